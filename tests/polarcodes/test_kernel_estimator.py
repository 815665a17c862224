"""The anytime estimator of polar codes from kernels: bias, error, and the bar around it."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from polarcodes import InvalidCode, make_code
from polarcodes.estimators import estimate_product
from polarcodes.kernels.code import KernelPolarCode
from polarcodes.kernels.kernel import dct_kernel

LOWER = [[1.0, 1.0], [0.0, 1.0]]


def with_signs(code, signs, positions=None):
    """The same code with other signs, and other punctured positions."""
    where = code.positions if positions is None else positions
    return KernelPolarCode(
        code.seed, code.epsilon, code.transform.kernels, code.inputs, where, signs
    )


def random_signs(rng, code):
    return rng.choice([-1, 1], code.transform.order).astype(np.int8)


@pytest.mark.parametrize(
    "workers,blocks,options",
    [(6, 4, {}), (9, 7, {}), (8, 5, {"stages": 2}), (8, 5, {"kernels": [LOWER] * 3})],
)
def test_unbiased_over_the_sets_of_one_size_for_any_signs(workers, blocks, options):
    """Exactly: the mean over all sets of three workers."""
    code = make_code("polar", workers=workers, data_blocks=blocks, seed=1, **options)
    U = np.random.default_rng(0).standard_normal((blocks, 2))
    coded = code.encode(U)
    sets = list(combinations(range(workers), 3))
    values = [code.estimate(S, coded[list(S)]).value for S in sets]
    np.testing.assert_allclose(np.mean(values, axis=0), U, atol=1e-12)


def test_punctured_codes_are_unbiased_over_sets_and_positions():
    """Exactly: over all positions of the workers, sets are all sets of the transform's rows."""
    code = make_code("polar", workers=5, data_blocks=3, seed=1)
    assert code.transform.order == 6
    U = np.random.default_rng(1).standard_normal((3, 2))
    values = []
    for positions in combinations(range(6), 5):
        where = np.array(positions, np.intp)
        row_of = np.zeros((6, 2))
        code.transform.apply(U, row_of, at=code.inputs)
        for S in combinations(range(5), 2):
            out = np.empty_like(U)
            rows = where[list(S)]
            code.transform.solve(row_of[rows], out, at=rows, take=code.inputs, factor=6 / 2)
            values.append(out)
    np.testing.assert_allclose(np.mean(values, axis=0), U, atol=1e-12)


def test_mixed_radix_is_biased_for_one_set_and_hadamard_kernels_are_not():
    """Exactly, over all signs: input k comes out scaled by (N/m) sum_S w_ik z_ik."""
    for options, biased in (({}, True), ({"kernels": "hadamard"}, False)):
        code = make_code("polar", workers=6, data_blocks=4, seed=1, **options)
        order, S = code.transform.order, [0, 2, 5]
        U = np.random.default_rng(2).standard_normal((4, 1))
        total = np.zeros_like(U)
        for pattern in range(16):
            signs = np.ones(order, np.int8)
            signs[code.inputs] = [1 - 2 * (pattern >> k & 1) for k in range(4)]
            other = with_signs(code, signs)
            total += other.estimate(S, other.encode(U)[S]).value / 16
        scale = np.sum(code.generator()[S] ** 2, axis=0) / len(S)  # w_i is z_i / N'
        np.testing.assert_allclose(total[:, 0], scale * U[:, 0], atol=1e-12)
        assert (np.abs(scale - 1).max() > 0.1) == biased


@pytest.mark.parametrize(
    "workers,blocks,arrived,options",
    [
        (12, 9, 5, {}),
        (27, 20, 15, {}),
        (48, 36, 30, {}),
        (50, 37, 30, {}),
        (32, 24, 20, {"stages": 3}),
        (16, 9, 8, {"kernels": [LOWER] * 4}),
        (25, 18, 12, {"kernels": [dct_kernel(5)] * 2}),
    ],
)
def test_the_mean_squared_error_is_the_closed_form(workers, blocks, arrived, options):
    """Blocks of equal strength; two-sided, 99.99 %: 3.9 standard errors of 1,500 draws."""
    code = make_code("polar", workers=workers, data_blocks=blocks, seed=1, **options)
    rng = np.random.default_rng(workers)
    order = code.transform.order
    squares = []
    for _ in range(1500):
        where = np.sort(rng.permutation(order)[:workers]) if order > workers else None
        # Any positions and inputs will do for the estimator: only decoding needs these inputs.
        U = rng.standard_normal((blocks, 8))
        U /= np.linalg.norm(U, axis=1, keepdims=True)
        other = with_signs(code, random_signs(rng, code))
        S = rng.permutation(workers)[:arrived]
        rows = other.positions[S] if where is None else where[S]
        answers, value = np.empty((arrived, 8)), np.empty_like(U)
        other.transform.apply(U, answers, at=code.inputs, take=rows)
        other.transform.solve(answers, value, at=rows, take=code.inputs, factor=order / arrived)
        squares.append(np.sum((value - U) ** 2) / blocks)
    error = 3.9 * np.std(squares) / np.sqrt(len(squares))
    assert error < 0.07 * np.mean(squares)
    assert abs(np.mean(squares) - code.predicted_error(arrived) ** 2) <= error


def test_the_absolute_error_is_the_relative_one_times_the_product():
    code = make_code("polar", workers=144, data_blocks=108, seed=1)
    rng = np.random.default_rng(3)
    U = rng.standard_normal((108, 4))
    coded = code.encode(U)
    ratios = []
    for _ in range(200):
        S = rng.permutation(144)[:90]
        estimate = code.estimate(S, coded[S])
        ratios.append(np.linalg.norm(estimate.value - U) / estimate.absolute_error)
    low, high = np.quantile(ratios, [0.05, 0.95])
    assert 0.85 < low < high < 1.15


@pytest.mark.parametrize(
    "workers,blocks,options", [(48, 36, {}), (50, 37, {}), (32, 24, {"stages": 3})]
)
@pytest.mark.parametrize("share", [0.3, 0.8])
def test_all_estimators_follow_their_formulas(workers, blocks, options, share):
    """100 codes each: rms figures are 7 % accurate. Spread products of one column."""
    rng = np.random.default_rng(int(share * 10))
    arrived = int(share * blocks)
    methods = ("sketch", "shrinkage", "least-squares")
    ratios = {(m, metric): [] for m in methods for metric in ("vector", "inner")}
    for seed in range(100):
        code = make_code("polar", workers=workers, data_blocks=blocks, seed=seed, **options)
        S = rng.permutation(workers)[:arrived]
        X = rng.standard_normal((blocks, 1))
        X /= np.linalg.norm(X)
        Y = code._encode_rows(X, S)
        for method, metric in ratios:
            result = estimate_product(code, S, Y, method=method, metric=metric)
            error = result.value - X
            size = np.linalg.norm(error) if metric == "vector" else np.vdot(X, error)
            ratios[method, metric].append((size / result.relative_error) ** 2)
    for (_, metric), squares in ratios.items():
        assert np.sqrt(np.mean(squares)) == pytest.approx(1, rel=0.2 if metric == "vector" else 0.4)
    assert estimate_product(code, S, Y).method == "least-squares"


def test_kernels_that_are_not_orthogonal_have_one_estimator():
    code = make_code("polar", workers=8, data_blocks=5, kernels=[LOWER] * 3)
    Y = np.ones((3, 1))
    assert estimate_product(code, [0, 1, 2], Y).method == "sketch"
    with pytest.raises(InvalidCode, match="one estimator"):
        estimate_product(code, [0, 1, 2], Y, method="shrinkage")


KINDS = {
    "generic blocks": lambda rng, s: rng.standard_normal((s, 20)),
    "one column": lambda rng, s: rng.standard_normal((s, 1)),
    "one strong block": lambda rng, s: np.eye(s)[[rng.integers(s)]].T,
    "five strong blocks": lambda rng, s: (np.arange(s)[rng.permutation(s)] < 5)[:, None] * 1.0,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "workers,blocks,arrived,options",
    [
        (6, 4, 3, {}),
        (12, 9, 10, {}),
        (48, 36, 20, {}),
        (48, 36, 47, {}),
        (50, 37, 40, {}),
        (32, 24, 20, {"stages": 3}),
        (288, 216, 200, {}),
        (288, 216, 286, {}),
        (512, 384, 300, {"stages": 6}),
    ],
)
def test_the_upper_bound_covers_95_percent(kind, workers, blocks, arrived, options):
    """200 draws of set, signs and product: a bound that covers 97.5 % fails once in 10^4."""
    code = make_code("polar", workers=workers, data_blocks=blocks, seed=1, **options)
    rng = np.random.default_rng(workers * 1000 + arrived)
    draws, covered = 200, 0
    for _ in range(draws):
        other = with_signs(code, random_signs(rng, code))
        S = rng.permutation(workers)[:arrived]
        Y = KINDS[kind](rng, blocks)
        estimate = other.estimate(S, other.operator(S).apply(Y))
        error = np.linalg.norm(estimate.value - Y) / np.linalg.norm(Y)
        covered += error <= estimate.relative_error_upper + 1e-12
    assert covered >= 0.925 * draws


@pytest.mark.parametrize("workers", [48, 192, 288, 972])
def test_the_upper_bound_is_not_far_above_the_predicted_error(workers):
    code = make_code("polar", workers=workers, data_blocks=workers * 3 // 4)
    rng = np.random.default_rng(8)
    for share in (0.2, 0.5, 0.9):
        S = rng.permutation(workers)[: int(workers * share)]
        estimate = code.estimate(S, np.ones((len(S), 1)))
        assert 1.0 <= estimate.relative_error_upper / estimate.relative_error < 2.0
