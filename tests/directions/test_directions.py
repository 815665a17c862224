"""Search directions: what every family must do, against dense oracles."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polarcodes import InvalidAnswers, InvalidCode, InvalidManifest
from polarcodes.directions import (
    DIRECTION_KINDS,
    directions_from_manifest,
    make_directions,
    smallest_count,
)

FAMILIES = [
    ("coded", {}),
    ("coded", {"code": "polar"}),
    ("structured", {}),
    ("gaussian", {}),
    ("finite-differences", {}),
]


def made(kind, options, parameters, seed=0, extra=4):
    count = smallest_count(kind, parameters, 0.2)
    if kind in ("structured", "gaussian"):
        count += extra
    return make_directions(kind, parameters=parameters, count=count, seed=seed, **options)


@pytest.mark.parametrize(("kind", "options"), FAMILIES)
@pytest.mark.parametrize("parameters", [1, 2, 5, 13])
def test_all_derivatives_of_a_linear_function_give_its_gradient(kind, options, parameters):
    directions = made(kind, options, parameters)
    gradient = np.random.default_rng(parameters).standard_normal(parameters)
    everyone = range(directions.count)
    found = directions.gradient(everyone, directions.vectors(everyone) @ gradient)
    assert directions.decodable(everyone)
    assert found.exact
    assert found.relative_error == 0.0
    np.testing.assert_allclose(found.value, gradient, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("kind", "options"), FAMILIES)
def test_a_worker_makes_its_own_direction_from_the_manifest(kind, options):
    directions = made(kind, options, 11, seed=5)
    stored = json.loads(json.dumps(directions.to_manifest()))
    rebuilt = directions_from_manifest(stored)
    everyone = list(range(directions.count))
    alone = np.vstack([rebuilt.vectors([worker]) for worker in everyone])
    np.testing.assert_array_equal(alone, directions.vectors(everyone))
    assert rebuilt.to_manifest() == directions.to_manifest()


@pytest.mark.parametrize(("kind", "options"), FAMILIES)
def test_directions_are_equally_long_on_average_and_their_mean_square_is_the_identity(
    kind, options
):
    total = np.zeros((6, 6))
    seeds = 1 if kind == "finite-differences" else 400
    for seed in range(seeds):
        directions = made(kind, options, 6, seed=seed)
        rows = directions.vectors(range(directions.count))
        total += rows.T @ rows / directions.count
    np.testing.assert_allclose(total / seeds, np.eye(6), atol=0.1)


@pytest.mark.parametrize(
    ("kind", "parameters", "count", "m"),
    [
        ("coded", 12, 16, 5),
        ("coded", 12, 16, 13),
        ("structured", 12, 40, 9),
        ("structured", 12, 40, 40),
        ("gaussian", 12, 40, 20),
        ("finite-differences", 12, 12, 7),
    ],
)
def test_the_unbiased_estimators_error_is_the_predicted_one(kind, parameters, count, m):
    rng = np.random.default_rng(3)
    squares, mean = [], np.zeros(parameters)
    gradient = rng.standard_normal(parameters)
    draws = 800
    for seed in range(draws):
        directions = make_directions(kind, parameters=parameters, count=count, seed=seed)
        S = rng.permutation(count)[:m]
        found = directions.gradient(S, directions.vectors(S) @ gradient, estimator="unbiased")
        mean += found.value / draws
        squares.append(np.sum((found.value - gradient) ** 2) / np.sum(gradient**2))
    predicted = make_directions(kind, parameters=parameters, count=count).predicted_error(m)
    # 800 draws: a relative standard error of the mean square of 4 % at most, three of them
    assert np.sqrt(np.mean(squares)) == pytest.approx(predicted, rel=0.07)
    noise = predicted * np.linalg.norm(gradient) / np.sqrt(draws)
    assert np.linalg.norm(mean - gradient) < 3 * noise + 1e-12


@settings(max_examples=40, deadline=None)
@given(
    parameters=st.integers(1, 20),
    seed=st.integers(0, 1000),
    share=st.floats(0, 1),
    family=st.sampled_from(FAMILIES),
)
def test_before_everything_is_known_least_squares_never_points_uphill(
    parameters, seed, share, family
):
    directions = made(*family, parameters, seed=seed)
    rng = np.random.default_rng(seed)
    gradient = rng.standard_normal(parameters)
    S = rng.permutation(directions.count)[: max(1, int(share * directions.count))]
    found = directions.gradient(S, directions.vectors(S) @ gradient)
    assert found.value @ gradient >= -1e-9
    assert np.linalg.norm(found.value) <= np.linalg.norm(gradient) * (1 + 1e-9)
    if directions.decodable(S):
        np.testing.assert_allclose(found.value, gradient, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("code", ["hadamard", "polar"])
def test_the_decoder_and_least_squares_agree_where_there_is_no_noise(code):
    directions = make_directions("coded", parameters=12, count=16, seed=2, code=code)
    gradient = np.arange(12.0) - 4
    S = [w for w in range(16) if w not in (3, 9)]
    y = directions.vectors(S) @ gradient
    decoded = directions.gradient(S, y, estimator="decode")
    assert decoded.method == "decode"
    np.testing.assert_allclose(decoded.value, gradient, atol=1e-9)
    np.testing.assert_allclose(directions.gradient(S, y).value, gradient, atol=1e-9)


def test_least_squares_averages_noise_and_the_decoder_does_not():
    directions = make_directions("coded", parameters=24, count=64, seed=0, code="polar")
    rng = np.random.default_rng(0)
    gradient, everyone = rng.standard_normal(24), range(64)
    clean = directions.vectors(everyone) @ gradient
    errors = {"least-squares": 0.0, "decode": 0.0}
    for _ in range(50):
        noisy = clean + 0.1 * rng.standard_normal(64)
        for estimator in errors:
            found = directions.gradient(everyone, noisy, estimator=estimator)
            errors[estimator] += float(np.sum((found.value - gradient) ** 2)) / 50
    # sigma^2 p / N by least squares
    assert errors["least-squares"] == pytest.approx(0.01 * 24 / 64, rel=0.25)
    assert errors["decode"] >= 0.99 * errors["least-squares"]


def test_ridge_does_not_multiply_noise_where_just_enough_values_have_come():
    errors = {"ridge": [], "least-squares": []}
    for seed in range(60):
        directions = make_directions("coded", parameters=24, count=32, seed=seed)
        rng = np.random.default_rng(seed)
        gradient = rng.standard_normal(24)
        S = rng.permutation(32)[:24]
        noisy = directions.vectors(S) @ gradient + 1.5 * rng.standard_normal(24)
        for estimator, squares in errors.items():
            found = directions.gradient(S, noisy, estimator=estimator)
            squares.append(np.sum((found.value - gradient) ** 2) / np.sum(gradient**2))
    rms = {name: float(np.sqrt(np.mean(squares))) for name, squares in errors.items()}
    assert rms["least-squares"] > 2
    assert rms["ridge"] < 0.75


def test_what_cannot_be_used_is_refused_with_the_fix():
    directions = make_directions("gaussian", parameters=3, count=5)
    with pytest.raises(InvalidAnswers, match="leave out evaluations that failed"):
        directions.gradient([0, 1], [1.0, float("nan")])
    with pytest.raises(InvalidAnswers, match=r"shape \(2,\)"):
        directions.gradient([0, 1], [1.0])
    with pytest.raises(InvalidCode, match="estimator must be one of"):
        directions.gradient([0], [1.0], estimator="magic")
    with pytest.raises(InvalidCode, match="directions must be one of"):
        make_directions("random", parameters=3, count=5)
    with pytest.raises(InvalidCode, match="no option 'code'"):
        make_directions("gaussian", parameters=3, count=5, code="polar")
    with pytest.raises(InvalidCode, match="must be the number of parameters"):
        make_directions("finite-differences", parameters=3, count=5)
    with pytest.raises(InvalidCode, match=r"redundancy must be in \[0, 1\)"):
        smallest_count("coded", 4, 1.0)
    with pytest.raises(InvalidManifest, match="kind must be one of"):
        directions_from_manifest({"kind": "other"})
    with pytest.raises(InvalidManifest, match="count must be an int"):
        directions_from_manifest({"kind": "gaussian", "parameters": 3, "count": "5", "seed": 0})


def test_no_answers_give_zero_and_an_infinite_error():
    for kind in DIRECTION_KINDS:
        directions = make_directions(kind, parameters=4, count=4)
        found = directions.gradient([], [])
        assert not found.exact
        assert found.relative_error == float("inf")
        assert not found.value.any()
