"""Anytime steps by two products, for least squares and logistic regression, in virtual time."""

from __future__ import annotations

import numpy as np
import pytest

from polarcodes.delays import make_delays
from polarlambda.simulation.iterations import Clock, SimulatedMatrix
from polarlambda.simulation.iterations_schemes import coded
from polarlambda.training.advance import FixedStep
from polarlambda.training.anytime_samples import AnytimeSamples
from polarlambda.training.loop import Descent
from polarlambda.training.models import make_model
from polarlambda.training.objective import Objective
from polarlambda.training.products import Product
from polarlambda.training.samples import SampleGradient
from polarlambda.training.stopping import Stop
from polarlambda.training.tolerance import Tolerance

N, D = 1200, 24


def problem(model, seed=0):
    """(X, objective, step): columns of different strength, a step of one over L."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D)) * np.logspace(0, -0.8, D)
    scores = X @ rng.standard_normal((D, 1)) * 2 + 0.3 + 0.2 * rng.standard_normal((N, 1))
    targets = scores if model == "least-squares" else (scores > 0).astype(float)
    l2 = 0.0 if model == "least-squares" else 0.01
    objective = Objective(make_model(model), targets, l2=l2)
    A = np.hstack([X, np.ones((N, 1))])
    L = objective.model.curvature * np.linalg.norm(A, 2) ** 2 / N + l2
    return X, objective, 1 / L


def sources(X, objective, step, seed=0, code="hadamard"):
    """(clock, exact source, anytime source) on one virtual clock."""
    delays, clock = make_delays("exponential", mean=1.5), Clock()
    schemes = [
        coded("c", 32, data_blocks=24, messages=2, code=code, seed=number) for number in range(2)
    ]
    matrices = [
        SimulatedMatrix(A, scheme, delays, clock=clock, seed=seed + number)
        for number, (A, scheme) in enumerate(zip((X, X.T), schemes, strict=True))
    ]
    products = (Product(matrices[0]), Product(matrices[1]))
    exact = SampleGradient(D, *products, objective)
    codes = (matrices[0].code, matrices[1].code)
    return clock, exact, AnytimeSamples(products, codes, D, objective, step)


def train(source, clock, step, tolerance, goal=1e-3):
    seen = []
    stop = Stop(gradient_norm=goal, iterations=4000)
    ending = Descent(source, FixedStep(step), stop, Tolerance(tolerance), clock).run(seen.append)
    return ending, seen


@pytest.mark.parametrize("model", ["least-squares", "logistic"])
def test_two_products_that_stop_reach_the_same_minimum_in_less_time(model):
    X, objective, step = problem(model)
    clock, _, anytime = sources(X, objective, step)
    ending, seen = train(anytime, clock, step, 0.5)
    clock, exact, _ = sources(X, objective, step)
    baseline, every = train(exact, clock, step, 0.0)
    assert (ending.state, baseline.state) == ("converged", "converged")
    assert ending.at.exact and ending.at.norm <= 1e-3 * ending.at.first_norm
    away = np.linalg.norm(ending.at.theta - baseline.at.theta)
    assert away < 0.05 * np.linalg.norm(baseline.at.theta)
    assert len(seen) < 1.2 * len(every)
    assert sum(not at.exact for at in seen) > len(seen) / 3
    assert ending.at.seconds < 0.9 * baseline.at.seconds


@pytest.mark.parametrize("code", ["hadamard", "mds"])
def test_the_error_that_is_predicted_is_the_one_that_is_made(code):
    """Within the bound: what passes X^T is bounded by all columns being as strong as the first."""
    X, objective, step = problem("least-squares")
    _, _, source = sources(X, objective, step, code=code)
    assert source._forth.estimator == ("paper" if code == "hadamard" else "best")
    theta, ratios = np.zeros(source.shape), []
    for _ in range(40):
        found = source.gradient(theta, 0.5)
        w, b = objective.split(theta)
        residual = objective.residual(X @ w + b)
        true = objective.join(X.T @ residual, residual.sum(axis=0, keepdims=True))
        off = float(np.linalg.norm(found.value - true))
        if found.exact:
            assert off < 1e-9
            assert found.loss == pytest.approx(objective.loss(X @ w + b))
        else:
            ratios.append(off / (found.error * np.linalg.norm(found.value)))
        theta = theta - 0.7 * step * found.value
    assert len(ratios) > 8 and np.median(ratios) < 1.2


def test_without_a_tolerance_both_products_are_exact():
    X, objective, step = problem("logistic")
    _, exact, source = sources(X, objective, step)
    theta = np.zeros(source.shape)
    for _ in range(4):
        found = source.gradient(theta, 0.0)
        assert found.exact
        np.testing.assert_allclose(found.value, exact.gradient(theta).value, atol=1e-12)
        theta = theta - step * found.value
