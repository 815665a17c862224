"""Least squares by anytime steps, with the product's own loop in virtual time."""

from __future__ import annotations

import numpy as np
import pytest

from polarcodes.delays import make_delays
from polarlambda.simulation.iterations import SimulatedMatrix
from polarlambda.simulation.iterations_schemes import coded
from polarlambda.training.advance import FixedStep
from polarlambda.training.anytime_gram import AnytimeGram
from polarlambda.training.gradients import ProductFailed
from polarlambda.training.gram import GramGradient, Moments
from polarlambda.training.loop import Descent
from polarlambda.training.models import make_model
from polarlambda.training.objective import Objective
from polarlambda.training.products import Product
from polarlambda.training.stopping import Stop
from polarlambda.training.tolerance import Tolerance

DELAYS = make_delays("exponential", mean=1.5)


def problem(condition=40.0, d=48, l2=0.0, intercept=False, seed=0):
    """(X, objective) with eigenvalues of X^T X / n from 1 to 1 / condition."""
    rng = np.random.default_rng(seed)
    n = 4 * d
    U = np.linalg.qr(rng.standard_normal((n, d)))[0]
    V = np.linalg.qr(rng.standard_normal((d, d)))[0]
    X = (U * np.sqrt(n * np.logspace(0, -np.log10(condition), d))) @ V
    y = X @ rng.standard_normal((d, 1)) + 0.3 + 0.1 * rng.standard_normal((n, 1))
    return X, Objective(make_model("least-squares"), y, l2=l2, intercept=intercept)


def sources(X, objective, seed=0):
    """(matrix on virtual time, exact source, anytime source)."""
    scheme = coded("c", 32, data_blocks=24, messages=2)
    matrix = SimulatedMatrix(X.T @ X, scheme, DELAYS, seed=seed)
    moments = Moments(X.T @ objective.targets, X.sum(axis=0)[:, None])
    product = Product(matrix)
    gram = GramGradient(product, moments, objective)
    return matrix, gram, AnytimeGram(product, matrix.code, gram)


def train(X, objective, anytime, goal=1e-4, seed=0):
    matrix, exact, estimated = sources(X, objective, seed)
    seen = []
    stop = Stop(gradient_norm=goal, iterations=5000)
    source, tolerance = (estimated, Tolerance(0.5)) if anytime else (exact, Tolerance())
    ending = Descent(source, FixedStep(0.9), stop, tolerance, matrix.clock).run(seen.append)
    return ending, seen


@pytest.mark.parametrize("seed", range(2))
def test_anytime_steps_reach_the_same_minimum_in_less_time(seed):
    X, objective = problem()
    ending, seen = train(X, objective, anytime=True, seed=seed)
    baseline, every = train(X, objective, anytime=False, seed=seed)
    assert (ending.state, baseline.state) == ("converged", "converged")
    solution = np.linalg.lstsq(X, objective.targets, rcond=None)[0]
    np.testing.assert_allclose(ending.at.theta, solution, atol=1e-2 * np.abs(solution).max())
    assert ending.at.exact and ending.at.norm <= 1e-4 * ending.at.first_norm
    assert len(seen) < 1.15 * len(every), "estimates cost hardly any steps"
    assert sum(not at.exact for at in seen) > len(seen) / 3
    assert ending.at.seconds < 0.85 * baseline.at.seconds


@pytest.mark.parametrize("intercept", [False, True])
def test_loss_and_error_of_an_estimate_are_what_they_say(intercept):
    X, objective = problem(l2=0.01, intercept=intercept)
    _, _, source = sources(X, objective)
    theta, ratios, exact_at = np.zeros(source.shape), [], None
    for _ in range(60):
        found = source.gradient(theta, 0.5)
        w, b = objective.split(theta)
        loss = objective.loss(X @ w + b) + objective.penalty(theta)
        residual = objective.residual(X @ w + b)
        true = objective.join(
            X.T @ residual + objective.l2 * w, residual.sum(axis=0, keepdims=True)
        )
        off = np.linalg.norm(found.value - true)
        if found.exact:
            np.testing.assert_allclose(found.value, true, atol=1e-9)
            assert found.loss == pytest.approx(loss)
            exact_at = theta
        else:
            ratios.append(off / (found.error * np.linalg.norm(found.value)))
            assert abs(found.loss - loss) <= np.linalg.norm(theta - exact_at) * off / 2 + 1e-9
        theta = theta - 0.5 * found.value
    assert len(ratios) > 15 and 0.7 < np.median(ratios) < 1.4


def test_without_a_tolerance_every_product_is_exact():
    X, objective = problem()
    _, _, source = sources(X, objective)
    theta = np.zeros(source.shape)
    for _ in range(5):
        found = source.gradient(theta, 0.0)
        assert found.exact
        theta = theta - found.value


def test_a_product_that_fails_is_raised():
    X, objective = problem()
    matrix, _, source = sources(X, objective)
    answers = matrix.multiply

    def broken(x, **options):
        from dataclasses import replace

        return replace(answers(x, **options), met=False, state="failed", message="lost")

    matrix.multiply = broken
    with pytest.raises(ProductFailed, match="lost"):
        source.gradient(np.ones(source.shape), 0.5)
