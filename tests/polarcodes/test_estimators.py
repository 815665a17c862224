"""Every estimator's bias, error formula and bar; 200 codes each: rms figures are 5 % accurate."""

from __future__ import annotations

import numpy as np
import pytest

from polarcodes import (
    InvalidAnswers,
    InvalidCode,
    fixed_blocks,
    from_reference,
    least_squares,
    make_code,
)
from polarcodes.estimators import estimate_product
from polarcodes.least_squares import minimum_norm

METHODS = ["sketch", "shrinkage", "least-squares"]
CODES = 200


def products(blocks: int, rng) -> np.ndarray:
    """Unit products of one column: spread energy, five blocks alike, a single block."""
    few = np.zeros((blocks, 1))
    few[:5] = 1.0
    columns = [rng.standard_normal((blocks, 1)), few, np.eye(blocks)[:, blocks // 2, None]]
    X = np.hstack(columns)
    return X / np.linalg.norm(X, axis=0)


@pytest.mark.parametrize("arrived", [16, 32, 44, 47])
@pytest.mark.parametrize("name", ["hadamard", "polar"])
def test_vector_errors_follow_their_formulas_and_stay_below_their_bars(name, arrived) -> None:
    rng = np.random.default_rng(arrived)
    squares, predicted, above = np.zeros((3, 3)), np.zeros(3), np.zeros((3, 3))
    for seed in range(CODES):
        code = make_code(name, workers=64, data_blocks=48, seed=seed)
        S = rng.permutation(64)[:arrived]
        X = products(48, rng)
        Y = code._encode_rows(X, S)
        for row, method in enumerate(METHODS):
            result = estimate_product(code, S, Y, method=method)
            error = np.linalg.norm(result.value - X, axis=0)
            squares[row] += error**2 / CODES
            predicted[row] += result.relative_error**2 / CODES
            above[row] += error > result.relative_error_upper
    # The formulas average over blocks of equal strength: the first column, whatever the code; with
    # random slots the other columns too.
    columns = slice(None) if name == "hadamard" else slice(0, 1)
    measured = np.sqrt(squares[:, columns])
    np.testing.assert_allclose(measured, np.sqrt(predicted)[:, None].repeat(measured.shape[1], 1),
                               rtol=0.15)  # fmt: skip
    assert above.max() <= 20  # 5 % of 200 and three standard deviations


def test_biases_are_as_stated() -> None:
    """<value, X> averages to 1, 1/(1+v) and r/s; its spread is about 0.2 / sqrt(200)."""
    rng = np.random.default_rng(0)
    overlaps = np.zeros(3)
    for seed in range(CODES):
        code = make_code("hadamard", workers=64, data_blocks=48, seed=seed)
        S = rng.permutation(64)[:32]
        X = products(48, rng)[:, :1]
        Y = code._encode_rows(X, S)
        for row, method in enumerate(METHODS):
            overlaps[row] += np.vdot(estimate_product(code, S, Y, method=method).value, X) / CODES
    v = code.predicted_error(32) ** 2
    np.testing.assert_allclose(overlaps, [1, 1 / (1 + v), 32 / 48], atol=0.05)


def test_inner_products_stay_within_their_figure_and_choose_their_own_method() -> None:
    rng = np.random.default_rng(1)
    for arrived, best in ((16, "sketch"), (32, "sketch"), (46, "least-squares")):
        squares, predicted = {m: 0.0 for m in METHODS}, {}
        for seed in range(CODES):
            code = make_code("hadamard", workers=64, data_blocks=48, seed=seed)
            S = rng.permutation(64)[:arrived]
            X = products(48, rng)[:, :1]
            Y = code._encode_rows(X, S)
            for method in METHODS:
                result = estimate_product(code, S, Y, method=method, metric="inner")
                squares[method] += np.vdot(X, result.value - X) ** 2 / CODES
                predicted[method] = result.relative_error
        for method in METHODS:
            assert np.sqrt(squares[method]) == pytest.approx(predicted[method], rel=0.3)
        assert estimate_product(code, S, Y, metric="inner").method == best
        assert estimate_product(code, S, Y).method == "least-squares"


def test_least_squares_is_the_pseudo_inverse() -> None:
    rng = np.random.default_rng(2)
    for name in ("hadamard", "polar", "mds", "lt"):
        code = make_code(name, workers=32, data_blocks=24, seed=1)
        for arrived in (1, 10, 20):
            S = rng.permutation(32)[:arrived]
            Y = rng.standard_normal((arrived, 3))
            value = minimum_norm(code.operator(S), Y)
            wanted = np.linalg.pinv(code.rows(S)) @ Y
            np.testing.assert_allclose(value, wanted, atol=1e-5 * np.abs(wanted).max())


def test_from_full_rank_on_the_best_estimate_is_the_decoded_product() -> None:
    rng = np.random.default_rng(3)
    for name in ("hadamard", "polar"):
        code = make_code(name, workers=64, data_blocks=48)
        U = rng.standard_normal((48, 4))
        S = rng.permutation(64)[:63]
        result = estimate_product(code, S, code.encode(U)[S])
        np.testing.assert_allclose(result.value, U, atol=1e-10)
        assert result.method in ("sequential", "syndrome")
        assert result.relative_error < 1e-6


def test_blocks_that_are_fixed_already_come_out_exactly() -> None:
    """A sequential decoder would report them; least squares keeps them without being told."""
    rng = np.random.default_rng(4)
    seen = 0
    for seed in range(20):
        code = make_code("polar", workers=64, data_blocks=48, seed=seed)
        S = rng.permutation(64)[:49]
        if code.decodable(S):
            continue
        fixed = fixed_blocks(code, S)
        U = rng.standard_normal((48, 3))
        result = estimate_product(code, S, code.encode(U)[S], method="least-squares")
        np.testing.assert_allclose(result.value[fixed], U[fixed], atol=1e-4)
        rows = code.rows(S)
        units = np.eye(48)
        outside = units - units @ np.linalg.pinv(rows) @ rows
        assert np.array_equal(fixed, np.linalg.norm(outside, axis=1) < 1e-6)
        seen += fixed.sum()
    assert seen > 100
    assert not fixed_blocks(code, []).any()


def test_differences_from_an_exact_reference_shrink_with_the_step() -> None:
    code = make_code("hadamard", workers=64, data_blocks=48, seed=1)
    rng = np.random.default_rng(5)
    reference = rng.standard_normal((48, 1))
    S = rng.permutation(64)[:40]
    for step in (1.0, 1e-3, 1e-6):
        change = step * rng.standard_normal((48, 1))
        result = from_reference(estimate_product(code, S, code.encode(change)[S]), reference)
        error = np.linalg.norm(result.value - reference - change)
        assert error == pytest.approx(result.absolute_error, rel=0.6)
        assert result.relative_error == pytest.approx(
            result.absolute_error / np.linalg.norm(result.value)
        )
        assert error / np.linalg.norm(result.value) <= result.relative_error_upper
        assert result.absolute_error < step * 7
        assert result.method == "least-squares from reference"
    with pytest.raises(InvalidAnswers, match="reference must have the shape"):
        from_reference(result, reference[:-1])


def test_methods_and_metrics_that_do_not_exist_are_refused() -> None:
    code = make_code("hadamard", workers=8, data_blocks=6)
    Y = np.zeros((3, 1))
    with pytest.raises(InvalidCode, match="method must be one of"):
        estimate_product(code, [0, 1, 2], Y, method="magic")
    with pytest.raises(InvalidCode, match="metric one of"):
        estimate_product(code, [0, 1, 2], Y, metric="magic")
    other = make_code("mds", workers=8, data_blocks=6)
    assert estimate_product(other, [0, 1, 2], Y).method == "least-squares"
    with pytest.raises(InvalidCode, match="one estimator"):
        estimate_product(other, [0, 1, 2], Y, method="sketch")
    nothing = estimate_product(code, [], Y[:0])
    assert nothing.relative_error == np.inf


@pytest.mark.parametrize("name", ["hadamard", "polar"])
def test_least_squares_is_the_same_dense_and_by_conjugate_gradients(name, monkeypatch):
    code = make_code(name, workers=64, data_blocks=48, seed=5)
    S = np.random.default_rng(1).permutation(64)[:30]
    Y = code.encode(np.random.default_rng(2).standard_normal((48, 5)))[S]
    dense = least_squares.minimum_norm(code.operator(S), Y)
    monkeypatch.setattr(least_squares, "DENSE_ROWS", 0)
    steps = least_squares.minimum_norm(code.operator(S), Y)
    np.testing.assert_allclose(dense, steps, atol=1e-5)
    np.testing.assert_allclose(dense, np.linalg.pinv(code.rows(S)) @ Y, atol=1e-9)
