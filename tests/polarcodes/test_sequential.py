from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarcodes import CodeError, DecodingPlan, InvalidPlan, code_from_manifest, make_code
from polarcodes.construction import data_slots
from polarcodes.erasures import erased_inputs
from polarcodes.sequential import compile_operations, first_step
from tests.polarcodes.oracles import sequential_order


def polar(workers, blocks, slots=None):
    manifest = make_code("polar", workers=workers, data_blocks=blocks, seed=5).to_manifest()
    if slots is not None:
        manifest["slots"] = [int(slot) for slot in slots]
    return code_from_manifest(manifest)


@given(st.integers(1, 6), st.randoms(use_true_random=False))
def test_decodes_every_decodable_set_of_any_slots(level, random):
    order = 1 << level
    slots = sorted(random.sample(range(order), random.randint(1, order)))
    code = polar(order, len(slots), slots)
    rng = np.random.default_rng(random.randint(0, 2**32))
    U = rng.integers(-50, 50, (len(slots), 3))
    coded = code.encode(U)
    S = sequential_order(code, rng)
    assert np.array_equal(code.plan(S).apply(coded[S].astype(float)), U)


@given(st.integers(1, 7), st.floats(0.05, 0.6), st.randoms(use_true_random=False))
def test_steps_use_only_what_is_there(level, epsilon, random):
    order = 1 << level
    slots = data_slots(order, max(1, round(order * (1 - epsilon))), epsilon)
    is_data = np.zeros(order, bool)
    is_data[slots] = True
    erased = np.array([random.random() < epsilon / 2 for _ in range(order)])
    if erased_inputs(erased)[slots].any():
        return
    operations = compile_operations(is_data, erased)
    if not operations.levels.size:
        assert operations.first.size == 0
        return
    assert operations.levels[0, 0] == 0
    assert operations.levels[-1, -1] == operations.first.size
    for begin, *_, end in operations.levels.tolist():
        ready = first_step(order) + begin
        assert operations.first[begin:end].max() < ready
        assert operations.second[begin:end].max() < ready


def test_nothing_to_fill_in_means_no_steps():
    plan = polar(64, 48).plan(range(64))
    assert plan.to_arrays()["levels"].shape == (0, 5)
    assert plan.to_arrays()["missing"].size == 0


@pytest.mark.parametrize(
    "workers,blocks,limit", [(256, 192, 2e-6), (1024, 768, 4e-6), (4096, 3584, 8e-5)]
)
def test_float32_answers_decode_within_the_expected_rounding(workers, blocks, limit):
    code = polar(workers, blocks)
    rng = np.random.default_rng(workers)
    U = rng.standard_normal((blocks, 8))
    coded = code.encode(U).astype(np.float32)
    for _ in range(5):
        S = sequential_order(code, rng)
        plan = code.plan(S)
        X = plan.apply(coded[S])
        error = np.linalg.norm(X - U) / np.linalg.norm(U)
        assert error < limit
        # The prediction counts the rounding of the answers; the arithmetic adds its own.
        assert 0.5 * plan.predicted_error() < error < 8 * plan.predicted_error()
        wide = plan.apply(coded[S].astype(np.float64))
        assert np.linalg.norm(wide - U) / np.linalg.norm(U) < limit


def test_predicted_error_is_the_norm_of_the_decoder():
    code = polar(64, 48)
    S = sequential_order(code, np.random.default_rng(0))
    plan = code.plan(S)
    dense = plan.apply(np.eye(len(S)))
    # 32 Gaussian columns: the relative standard deviation of the norm is below 13 %; 4 of them.
    assert plan.predicted_error(1.0) == pytest.approx(np.linalg.norm(dense), rel=0.5)


def test_memory_is_at_most_three_arrays():
    code = polar(1024, 896)
    rng = np.random.default_rng(1)
    S = sequential_order(code, rng)
    Y = rng.standard_normal((len(S), 2000)).astype(np.float32)
    plan = code.plan(S)
    tracemalloc.start()
    try:
        plan.apply(Y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak + Y.nbytes <= 3 * Y.nbytes


def stored(code, S):
    return {name: np.array(values) for name, values in code.plan(S).to_arrays().items()}


def test_plans_that_do_not_fit_together_are_refused():
    code = polar(64, 48)
    S = sequential_order(code, np.random.default_rng(2))
    good = stored(code, S)
    assert good["first"].size > 20
    DecodingPlan.from_arrays(good)

    def changed(name, change):
        arrays = {key: value.copy() for key, value in good.items()}
        arrays[name] = change(arrays[name])
        return arrays

    def with_first(values, value):
        values[0] = value
        return values

    wrong = [
        {key: value for key, value in good.items() if key != "levels"},
        changed("method", lambda _: np.array("magic")),
        changed("workers", lambda values: values[:-1]),
        changed("workers", lambda values: with_first(values, values[1])),
        changed("first", lambda values: with_first(values, 10**6)),
        changed("first", lambda values: with_first(values, -1)),
        changed("first", lambda values: values[:-1]),
        changed("second", lambda values: values.astype(float)),
        changed("levels", lambda values: values[1:]),
        changed("levels", lambda values: values[:, :4]),
        changed("levels", lambda values: values[:, ::-1]),
        changed("filled", lambda values: values[:-1]),
        changed("slots", lambda values: with_first(values, 64)),
        changed("signs", lambda values: values * 2),
        changed("signs", lambda values: values[:-1]),
        changed("signs", lambda values: values.astype("S1")),
    ]
    for arrays in wrong:
        with pytest.raises(InvalidPlan):
            DecodingPlan.from_arrays(arrays)
    uncoded = make_code("uncoded", workers=4, data_blocks=4).plan([3, 1, 0, 2]).to_arrays()
    with pytest.raises(InvalidPlan):
        DecodingPlan.from_arrays({**uncoded, "rows": np.array([0, 1, 2, 4])})


def test_a_plan_cannot_be_changed():
    code = polar(64, 48)
    S = sequential_order(code, np.random.default_rng(3))
    plan = code.plan(S)
    Y = np.random.default_rng(4).standard_normal((len(S), 2))
    X = plan.apply(Y)
    with pytest.raises(ValueError):
        plan.workers[0] = 3
    for name, values in plan.to_arrays().items():
        if name != "method":
            values[...] = 0
    assert np.array_equal(plan.apply(Y), X)


def test_errors_share_one_base():
    assert issubclass(InvalidPlan, CodeError)
