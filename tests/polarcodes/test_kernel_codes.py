"""Polar codes from kernels: mixed radix, any N, own kernels, recursion stopped early."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from polarcodes import (
    DecodingPlan,
    InvalidBlocks,
    InvalidCode,
    InvalidManifest,
    InvalidPlan,
    NotDecodable,
    code_from_manifest,
    make_code,
)
from polarcodes.kernels.code import KernelPolarCode
from polarcodes.kernels.kernel import dct_kernel, hadamard_kernel
from polarcodes.polar import PolarCode
from polarcodes.thresholds import arrivals_needed, decoding_times
from tests.polarcodes.oracles import decodable_order

H = [[1, 1], [1, -1]]
LOWER = [[1.0, 1.0], [0.0, 1.0]]  # polarises, is not orthogonal
VARIANTS = [
    (6, 4, {}),
    (9, 9, {}),
    (10, 7, {}),
    (10, 10, {"kernels": "hadamard"}),
    (12, 8, {"stages": 2}),
    (16, 11, {"stages": 3}),
    (16, 11, {"kernels": [H] * 4}),
    (25, 18, {"kernels": [dct_kernel(5), dct_kernel(5).tolist()]}),
    (8, 5, {"kernels": [LOWER, H, LOWER]}),
    (29, 20, {"kernels": [H, dct_kernel(3), dct_kernel(5)]}),
    (54, 30, {"kernels": [dct_kernel(3)] * 3 + [H], "stages": 3}),
]
codes = st.sampled_from(VARIANTS).map(
    lambda case: make_code("polar", workers=case[0], data_blocks=case[1], seed=5, **case[2])
)


@pytest.fixture(params=VARIANTS, ids=lambda case: f"{case[0]}-{case[1]}-{len(case[2])}")
def code(request):
    workers, blocks, options = request.param
    return make_code("polar", workers=workers, data_blocks=blocks, seed=5, **options)


def dense(code):
    """The generator as a Kronecker product of dense matrices."""
    matrix = np.ones((1, 1))
    for kernel in code.transform.kernels:
        matrix = np.kron(matrix, kernel)
    matrix = np.kron(matrix, np.eye(code.transform.leaf))
    return (matrix * code.transform.signs)[np.ix_(code.positions, code.inputs)]


def test_the_class_follows_from_the_options(code):
    assert isinstance(code, KernelPolarCode)
    plain = make_code("polar", workers=16, data_blocks=11)
    assert isinstance(plain, PolarCode)
    assert make_code("polar", workers=16, data_blocks=11, kernels="hadamard") == plain
    assert make_code("polar", workers=16, data_blocks=11, kernels="mixed") == plain


def test_the_generator_is_a_kronecker_product(code):
    np.testing.assert_allclose(code.generator(), dense(code), atol=1e-12)
    U = np.random.default_rng(0).standard_normal((code.s, 3))
    np.testing.assert_allclose(code.encode(U), dense(code) @ U, atol=1e-12 * code.s)


def test_golden_codeword_of_three_workers():
    code = make_code("polar", workers=3, data_blocks=3, seed=0)
    d = code.transform.signs.astype(float)
    a, b = np.sqrt(1.5), np.sqrt(0.5)
    wanted = np.array([[1, a, b], [1, 0, -2 * b], [1, -a, b]]) * d
    np.testing.assert_allclose(code.generator(), wanted, atol=1e-15)
    assert make_code("polar", workers=3, data_blocks=2).inputs.tolist() == [1, 2]


def test_golden_inputs():
    """N = 6, epsilon 1/2: z of the halves 3/4 and 1/4, then 1-(1-z)^3, 3z^2-2z^3, z^3."""
    code = make_code("polar", workers=6, data_blocks=3)
    z = [1 - 1 / 64, 54 / 64, 27 / 64, 37 / 64, 10 / 64, 1 / 64]
    assert code.inputs.tolist() == sorted(np.argsort(z)[:3].tolist())


@pytest.mark.parametrize("workers", [*range(2, 40), 100, 1000])
def test_every_number_of_workers_decodes_all_its_answers(workers):
    for blocks in {1, workers // 2 or 1, workers - 1 or 1, workers}:
        code = make_code("polar", workers=workers, data_blocks=blocks, seed=3)
        assert code.decodable(range(workers))
        U = np.random.default_rng(workers).standard_normal((blocks, 2))
        X = code.plan(range(workers)).apply(code.encode(U))
        np.testing.assert_allclose(X, U, atol=1e-11)


@given(codes, st.randoms(use_true_random=False), st.integers(1, 130))
@settings(max_examples=150)
def test_decoding_undoes_encoding_on_every_decodable_set(code, random, columns):
    S = random.sample(range(code.N), random.randint(code.s, code.N))
    assume(code.decodable(S))
    U = np.random.default_rng(random.randint(0, 2**32)).standard_normal((code.s, columns))
    np.testing.assert_allclose(code.plan(S).apply(code.encode(U)[S]), U, atol=1e-10)


@given(
    st.integers(2, 60),
    st.sampled_from(["mixed", "hadamard"]),
    st.integers(1, 6),
    st.randoms(use_true_random=False),
)
@settings(max_examples=60)
def test_any_code_decodes_any_decodable_set(workers, kernels, stages, random):
    blocks = random.randint(1, workers)
    erasure = [random.choice([0.0, 0.1, 0.5, 0.9]) for _ in range(workers - 1)] + [0.3]
    try:
        code = make_code(
            "polar",
            workers=workers,
            data_blocks=blocks,
            erasure=erasure,
            kernels=kernels,
            stages=stages,
        )
    except InvalidCode as refused:
        assert "stages" in str(refused)
        return
    S = random.sample(range(workers), random.randint(blocks, workers))
    U = np.random.default_rng(random.randint(0, 2**32)).standard_normal((blocks, 2))
    if not code.decodable(S):
        with pytest.raises(NotDecodable) as caught:
            code.plan(S)
        S += caught.value.helpful
    np.testing.assert_allclose(code.plan(S).apply(code.encode(U)[S]), U, atol=1e-9)


@given(codes, st.randoms(use_true_random=False))
def test_arrivals_equal_the_batch_and_times_say_when(code, random):
    order = random.sample(range(code.N), code.N)
    state = code.arrivals()
    first = None
    for count, worker in enumerate(order, 1):
        state.add(worker)
        assert state.decodable == code.decodable(order[:count]) == (state.method is not None)
        if first is None and state.decodable:
            first = count
    ranks = np.argsort(order) + 1.0
    assert decoding_times(code, ranks) == first <= decoding_times(code, ranks, quick=True)


def test_manifest_and_plan_survive_storage(code):
    again = code_from_manifest(json.loads(json.dumps(code.to_manifest(), allow_nan=False)))
    assert again == code
    rng = np.random.default_rng(1)
    U = rng.standard_normal((code.s, 70))
    assert np.array_equal(again.encode(U), code.encode(U))
    S = decodable_order(code, rng)
    Y = code.encode(U)[S]
    plan = DecodingPlan.from_arrays(code.plan(S).to_arrays())
    whole = again.plan(S).apply(Y)
    assert np.array_equal(plan.apply(Y), whole)
    parts = [plan.apply(Y[:, :33]), plan.apply(Y[:, 33:])]
    assert np.array_equal(np.concatenate(parts, axis=1), whole)


def test_integer_kernels_are_exact_and_the_others_say_that_they_are_not(code):
    U = np.random.default_rng(2).integers(0, 256, (code.s, 9)).astype(np.uint8)
    coded = code.encode(U)
    buffer = np.zeros((code.N, 9), coded.dtype)
    buffer[code.slots] = U
    code.encode_inplace(buffer)
    if code.transform.exact:
        assert coded.dtype.kind == "i"
        assert np.array_equal(coded, dense(code) @ U)
        assert np.array_equal(buffer, coded)
        return
    assert coded.dtype == np.float32
    np.testing.assert_allclose(buffer, dense(code) @ U, rtol=1e-5, atol=0.01)
    with pytest.raises(InvalidBlocks, match="float64 buffer"):
        code.encode_inplace(np.zeros((code.N, 9), np.int32))


def test_integers_of_large_kernels_use_the_row_weight():
    code = make_code("polar", workers=4, data_blocks=4, kernels=[[[1, 3], [2, 1]]] * 2)
    assert code.row_weight == 16
    U = np.full((4, 1), 127, np.int8)
    assert np.array_equal(code.encode(U), dense(code) @ U)


@pytest.mark.parametrize(
    "options",
    [
        {"workers": 1, "data_blocks": 1},
        {"workers": 12.0, "data_blocks": 1},
        {"workers": 12, "data_blocks": 13},
        {"workers": 12, "data_blocks": 0},
        {"workers": 12, "data_blocks": 6, "epsilon": 0},
        {"workers": 12, "data_blocks": 6, "epsilon": "a"},
        {"workers": 12, "data_blocks": 6, "kernels": "dct"},
        {"workers": 12, "data_blocks": 6, "kernels": []},
        {"workers": 12, "data_blocks": 6, "kernels": 2},
        {"workers": 12, "data_blocks": 6, "kernels": [H, [[1, 0], [1, 1]]]},
        {"workers": 12, "data_blocks": 6, "kernels": [H, H, H]},
        {"workers": 12, "data_blocks": 6, "stages": 0},
        {"workers": 12, "data_blocks": 6, "stages": 4},
        {"workers": 12, "data_blocks": 6, "epsilon": 0.5, "times": [1.0, 2.0]},
    ],
)
def test_impossible_codes_are_refused(options):
    with pytest.raises(InvalidCode):
        make_code("polar", **options)


def test_manifests_that_do_not_fit_are_refused():
    manifest = make_code("polar", workers=10, data_blocks=7).to_manifest()
    wrong = {
        "epsilon": 1.0,
        "kernels": [H, [[1, 0], [1, 1]]],
        "signs": manifest["signs"][:-1],
        "inputs": [0, *manifest["inputs"][1:]] if 0 not in manifest["inputs"] else None,
        "positions": [12, *manifest["positions"][1:]],
        "workers": 11,
    }
    for field, value in wrong.items():
        with pytest.raises(InvalidManifest):
            code_from_manifest({**manifest, field: value})


def test_plans_that_do_not_fit_together_are_refused():
    code = make_code("polar", workers=24, data_blocks=16, seed=1)
    S = decodable_order(code, np.random.default_rng(3))
    good = code.plan(S).to_arrays()
    assert len(good["terms"]) > 3
    wrong = {
        "terms": good["terms"] + 10**6,
        "coefficients": good["coefficients"] * np.nan,
        "levels": good["levels"][1:],
        "missing": good["missing"][:-1],
        "filled": good["filled"][:-1],
        "rows": good["rows"][::-1] * 0,
        "slots": good["slots"] * 0,
        "signs": good["signs"] * 2,
        "kernel_sizes": good["kernel_sizes"][:-1],
        "kernel_entries": good["kernel_entries"] * 0,
        "workers": good["workers"][:-1],
    }
    for field, value in wrong.items():
        with pytest.raises(InvalidPlan):
            DecodingPlan.from_arrays({**good, field: value})
    late = {**good, "terms": good["terms"].copy()}
    late["terms"][0, 0] = 24 + 1 + len(good["terms"]) - 1
    with pytest.raises(InvalidPlan):
        DecodingPlan.from_arrays(late)


@pytest.mark.parametrize(
    "workers,blocks,most", [(48, 36, 1.12), (243, 182, 1.11), (192, 144, 1.12)]
)
def test_mixed_radix_needs_what_a_power_of_two_does(workers, blocks, most):
    """Two-sided by the mean of 400 orders, whose standard error is below 0.003 s."""
    code = make_code("polar", workers=workers, data_blocks=blocks)
    needed = arrivals_needed(code, np.random.default_rng(4), 400, quick=True) / blocks
    assert needed.std() / 20 < 0.004
    assert 1.06 < needed.mean() < most


def test_larger_kernels_need_fewer_arrivals_and_fewer_stages_more():
    rng = np.random.default_rng(5)

    def mean(**options):
        code = make_code("polar", workers=64, data_blocks=48, **options)
        return arrivals_needed(code, rng, 400, quick=True).mean()

    assert mean(kernels=[dct_kernel(8)] * 2) < mean() - 0.5
    assert mean(stages=2) > mean(stages=4) + 1 > mean() + 1


@pytest.mark.parametrize("workers,blocks", [(96, 72), (972, 850)])
def test_float32_answers(workers, blocks):
    code = make_code("polar", workers=workers, data_blocks=blocks, seed=2)
    rng = np.random.default_rng(6)
    U = rng.standard_normal((blocks, 8))
    coded = code.encode(U).astype(np.float32)
    for _ in range(3):
        S = decodable_order(code, rng)
        plan = code.plan(S)
        X = plan.apply(coded[S])
        assert X.dtype == np.float32
        error = np.linalg.norm(X - U) / np.linalg.norm(U)
        assert error < 1e-5
        assert 0.3 * plan.predicted_error() < error < 3 * plan.predicted_error()


def test_hadamard_kernels_give_the_polar_code_itself():
    whole = make_code("polar", workers=64, data_blocks=48, seed=9)
    listed = make_code("polar", workers=64, data_blocks=48, seed=9, kernels=[hadamard_kernel()] * 6)
    assert isinstance(listed, KernelPolarCode)
    assert np.array_equal(listed.generator(), whole.generator())
    for m in (1, 20, 63):
        assert listed.predicted_error(m) == pytest.approx(whole.predicted_error(m))
    S = np.random.default_rng(7).permutation(64)[:30]
    Y = np.random.default_rng(8).standard_normal((30, 2))
    ours, theirs = listed.estimate(S, Y), whole.estimate(S, Y)
    np.testing.assert_allclose(ours.value, theirs.value, atol=1e-12)
    assert ours.absolute_error == pytest.approx(theirs.absolute_error)
