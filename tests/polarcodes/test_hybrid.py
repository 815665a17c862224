"""The hybrid estimator: settled blocks exact, the rest unbiased, with the figures it predicts."""

from __future__ import annotations

import numpy as np
import pytest

from polarcodes import InvalidCode, fixed_blocks, make_code
from polarcodes.estimators import choose_estimator, estimate_product, expected_error

CODES = 120
SIZES = {"polar": (32, 24, 23), "mixed": (24, 18, 17), "punctured": (22, 16, 15)}


@pytest.mark.parametrize("name", SIZES)
def test_bias_errors_and_bar(name: str) -> None:
    """120 codes with a random set each, one answer short of s: an rms is 7 % accurate."""
    workers, blocks, arrived = SIZES[name]
    rng = np.random.default_rng(0)
    squares = predicted = inner = inner_predicted = sketch = 0.0
    overlap = np.zeros(CODES)
    above = settled = 0
    for seed in range(CODES):
        code = make_code("polar", workers=workers, data_blocks=blocks, seed=seed)
        S = rng.permutation(workers)[:arrived]
        X = rng.standard_normal((blocks, 1))
        X /= np.linalg.norm(X)
        Y = code._encode_rows(X, S)
        result = estimate_product(code, S, Y, method="hybrid")
        known = code.settled(S)
        assert not (known & ~fixed_blocks(code, S)).any()
        np.testing.assert_allclose(result.value[known], X[known], atol=1e-9)
        error = np.linalg.norm(result.value - X)
        squares, predicted = squares + error**2, predicted + result.relative_error**2
        sketch += choose_estimator(code, S, "sketch")[1] ** 2
        overlap[seed] = np.vdot(result.value, X)
        inner += (overlap[seed] - 1) ** 2
        inner_predicted += choose_estimator(code, S, "hybrid", metric="inner")[1] ** 2
        above += error > result.relative_error_upper
        settled += int(known.sum())
    assert settled > 0.05 * CODES * blocks
    assert np.sqrt(squares) == pytest.approx(np.sqrt(predicted), rel=0.2)
    assert np.sqrt(inner) == pytest.approx(np.sqrt(inner_predicted), rel=0.4)
    assert predicted < 0.97 * sketch
    if name == "polar":  # for fixed S; kernels of entries that differ are unbiased over S too
        assert overlap.mean() == pytest.approx(1.0, abs=4 * overlap.std() / np.sqrt(CODES))
    assert above <= 0.05 * CODES + 3 * np.sqrt(0.05 * 0.95 * CODES)


def test_it_is_best_for_inner_products_once_something_is_settled() -> None:
    code = make_code("polar", workers=64, data_blocks=32, seed=0)
    rng = np.random.default_rng(2)
    chosen = {
        m: [choose_estimator(code, rng.permutation(64)[:m], metric="inner")[0] for _ in range(20)]
        for m in (10, 28)
    }
    assert set(chosen[10]) == {"sketch"} and "hybrid" in chosen[28]
    S = np.arange(10)
    Y = rng.standard_normal((10, 3))
    np.testing.assert_allclose(
        estimate_product(code, S, Y, method="hybrid").value,
        estimate_product(code, S, Y, method="sketch").value,
        atol=1e-9,
    )


@pytest.mark.parametrize("name", SIZES)
def test_what_is_settled_grows_with_the_answers_up_to_everything(name: str) -> None:
    workers, blocks, _ = SIZES[name]
    code = make_code("polar", workers=workers, data_blocks=blocks, seed=1)
    rng = np.random.default_rng(3)
    for _ in range(4):
        order = rng.permutation(workers)
        flags = np.array([code.settled(order[:m]) for m in range(workers + 1)])
        assert (flags[:-1] <= flags[1:]).all() and not flags[0].any() and flags[-1].all()
        fixed = np.array([fixed_blocks(code, order[:m]) for m in range(workers + 1)])
        assert (flags <= fixed).all()
    early = expected_error(code, workers // 2, "hybrid")
    assert early == expected_error(code, workers // 2, "sketch")


def test_codes_without_a_sequential_decoder_refuse_it() -> None:
    for name in ("hadamard", "uncoded"):
        code = make_code(name, workers=16, data_blocks=16 if name == "uncoded" else 12)
        with pytest.raises(InvalidCode, match=r"sequential decoder|one estimator"):
            choose_estimator(code, range(5), "hybrid")


@pytest.mark.parametrize("N", [16, 64, 256])
def test_the_sequential_decoder_never_takes_more_sums_than_a_transform(N: int) -> None:
    """Which is why a plan takes it whenever it is ready: the syndrome decoder transforms twice."""
    rng = np.random.default_rng(N)
    for blocks in (N // 2, 3 * N // 4, 7 * N // 8):
        code = make_code("polar", workers=N, data_blocks=blocks)
        for _ in range(20):
            plan = code.plan(rng.permutation(N)[: N - rng.integers(0, max(1, (N - blocks) // 3))])
            if plan.method == "sequential":
                assert plan._operations.first.size <= N * np.log2(N)
