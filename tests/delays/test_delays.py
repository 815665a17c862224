from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarcodes.delays import DELAY_NAMES, DelayModel, from_table, make_delays
from polarcodes.rare_tail import LambdaRareTail

MODELS = [
    *(make_delays(name) for name in DELAY_NAMES),
    from_table([[1.0, 3.0, 2.0], [5.0, 5.0, 9.0]]),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_every_model_draws_finite_seconds_that_depend_on_the_generator_alone(
    model: DelayModel,
) -> None:
    first = model.sample(np.random.default_rng(3), 50, 7)
    assert first.shape == (50, 7) and first.dtype == np.float64
    assert np.isfinite(first).all() and (first >= 0).all()
    np.testing.assert_array_equal(first, model.sample(np.random.default_rng(3), 50, 7))
    assert model.name in model.describe()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_mean_and_quantiles_are_those_of_the_draws(model: DelayModel) -> None:
    # Means: within 5 standard errors (two-sided failure below 1e-6). Workers of one round are not
    # independent (stalls come in rounds), so the error is taken over round means. Quantiles: the
    # share of draws below is within 5 sqrt(p (1 - p) / n).
    draws = model.sample(np.random.default_rng(11), 20_000, 3)
    means = draws.mean(axis=1)
    assert abs(means.mean() - model.mean) <= 5 * means.std() / math.sqrt(len(means)) + 1e-12
    if model.name == "measured":
        return  # six values only: a quantile interpolates between them
    one_each = draws[:, 0]
    for p in (0.05, 0.5, 0.9, 0.99):
        below = (one_each <= model.quantile(p)).mean()
        if model.name == "none":
            assert below == 1.0
        else:
            assert abs(below - p) <= 5 * math.sqrt(p * (1 - p) / len(one_each))


def test_a_table_is_replayed_as_value_minus_row_minimum() -> None:
    model = from_table([[1.0, 3.0, 2.0], [5.0, 5.0, 9.0]])
    np.testing.assert_array_equal(model.excess, [[0, 2, 1], [0, 0, 4]])
    rounds = model.sample(np.random.default_rng(0), 200, 3)
    kinds = {tuple(sorted(row)) for row in rounds}
    assert kinds == {(0, 1, 2), (0, 0, 4)}, "a round keeps its own workers, each once"
    assert model.sample(np.random.default_rng(0), 4, 10).shape == (4, 10)


@given(st.lists(st.lists(st.floats(0, 1e6), min_size=4, max_size=4), min_size=1, max_size=5))
def test_every_round_of_a_table_has_an_undelayed_worker(table: list[list[float]]) -> None:
    excess = from_table(table).excess
    assert (excess.min(axis=1) == 0).all()
    rows = np.asarray(table)
    np.testing.assert_allclose(excess + rows.min(axis=1, keepdims=True), rows, rtol=1e-12)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.zeros((0, 4)), "not empty"),
        (np.zeros((2, 2, 2)), "rounds, workers"),
        ([[1.0, math.nan]], "nan in row 0, column 1"),
        ([[1.0, 2.0], [math.inf, 1.0]], "inf in row 1, column 0"),
        ([[-1.0, 2.0]], "-1.0 in row 0, column 0"),
    ],
)
def test_a_bad_table_is_refused(table: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_table(table)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("lambda", {}, "must be one of none, exponential, lambda-rare-tail"),
        ("exponential", {"rate": 2.0}, "does not take"),
        ("exponential", {"mean": 0.0}, "mean must be a positive"),
        ("exponential", {"mean": math.inf}, "mean must be a positive"),
        ("lambda-rare-tail", {"long_share": 1.5}, "long_share must be a probability"),
        ("lambda-rare-tail", {"body_shape": 1.0}, "body_shape must be above 1"),
        ("lambda-rare-tail", {"early_mean": math.nan}, "early_mean must be a positive"),
    ],
)
def test_a_bad_model_is_refused(name: str, parameters: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_delays(name, **parameters)


def test_stalls_come_in_rounds() -> None:
    """Fitted behaviour: 27.5 % of rounds of 256 have a stall and these have 4.6 stalled workers on
    average."""
    counts = (LambdaRareTail().sample(np.random.default_rng(5), 4000, 256) > 5.0).sum(axis=1)
    share = (counts > 0).mean()
    assert abs(share - 0.275) < 5 * math.sqrt(0.275 * 0.725 / 4000)
    hit = counts[counts > 0]
    assert abs(hit.mean() - 4.64) < 5 * hit.std() / math.sqrt(len(hit))


@given(st.floats(0.0, 0.9999))
def test_quantile_inverts_the_distribution(probability: float) -> None:
    model = LambdaRareTail()
    seconds = model.quantile(probability)
    assert model.cdf(seconds) == pytest.approx(probability, abs=1e-9)


def test_the_shipped_constants_are_those_of_the_fit() -> None:
    folder = Path(os.environ.get("POLARLAMBDA_DELAYS", "../shared/data/lambda-delays"))
    if not list(folder.glob("short-*-rare-long-tail.csv")):
        pytest.skip("the measured profiles are not here (set POLARLAMBDA_DELAYS to their folder)")
    from scripts.fit_delays import fit, load, quality

    excess = load(folder)
    fitted, shipped = vars(fit(excess)), vars(LambdaRareTail())
    for constant, value in fitted.items():
        assert value == pytest.approx(shipped[constant], rel=2e-3) if constant != "name" else True
    for what, data, model in quality(excess, LambdaRareTail()):
        if what.startswith(("50 ", "90 ", "99 ", "99.9 ", "mean", "largest of 64: mean", "share")):
            assert model == pytest.approx(data, rel=0.06), what
