"""Gradients, steps and the loop against NumPy, without a platform."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from polarlambda.errors import BadInput
from polarlambda.training.advance import make_advance
from polarlambda.training.gradients import Line, LineSource, ProductFailed
from polarlambda.training.gram import GramGradient, Moments
from polarlambda.training.line_search import search_line
from polarlambda.training.loop import Descent
from polarlambda.training.samples import REFRESH, SampleGradient
from polarlambda.training.stopping import Stop
from polarlambda.training.tolerance import Tolerance
from tests.training.exact_products import NumpyProduct, problem

ALL = ("least-squares", "ridge", "logistic", "multinomial")


def by_samples(X, objective, **missing):
    there = NumpyProduct(X, missing.get("samples", ()))
    back = NumpyProduct(X.T, missing.get("coordinates", ()))
    return SampleGradient(X.shape[1], there, back, objective), there, back


def by_gram(X, objective, missing=()):
    product = NumpyProduct(X.T @ X, missing)
    ones = X.sum(axis=0)[:, None]
    return GramGradient(product, Moments(X.T @ objective.targets, ones), objective), product


def objective_at(X, objective, theta):
    w, b = objective.split(theta)
    return objective.loss(X @ w + b) + objective.penalty(theta)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("model", ALL)
def test_gradients_are_the_derivatives_of_the_objective(model, intercept):
    X, objective = problem(model, l2=0.07, intercept=intercept)
    theta = np.random.default_rng(1).standard_normal(objective.shape(X.shape[1]))
    sources = [by_samples(X, objective)[0]]
    if objective.model.quadratic:
        sources.append(by_gram(X, objective)[0])
    for source in sources:
        assert source.shape == theta.shape
        found = source.gradient(theta)
        assert found.exact and found.recovered == 1
        assert found.loss == pytest.approx(objective_at(X, objective, theta), rel=1e-12)
        for place in np.ndindex(theta.shape):
            bump = np.zeros_like(theta)
            bump[place] = 1e-5
            up, down = (objective_at(X, objective, theta + s * bump) for s in (1, -1))
            assert found.value[place] == pytest.approx((up - down) / 2e-5, abs=1e-6)


@pytest.mark.parametrize("model", ALL)
def test_a_line_is_the_objective_along_it_and_the_source_knows_where_it_went(model):
    X, objective = problem(model, l2=0.07)
    rng = np.random.default_rng(1)
    theta, direction = rng.standard_normal((2, *objective.shape(X.shape[1])))
    sources = [by_samples(X, objective)]
    if objective.model.quadratic:
        sources.append(by_gram(X, objective))
    for source, *products in sources:
        assert isinstance(source, LineSource)
        source.gradient(theta)
        before = sum(p.count for p in products)
        line = source.along(theta, direction)
        for a in (0.0, 0.3, 2.0):
            there = objective_at(X, objective, theta + a * direction)
            assert line.loss(a) == pytest.approx(there, rel=1e-10)
            up, down = (
                objective_at(X, objective, theta + (a + s) * direction) for s in (1e-5, -1e-5)
            )
            assert line.slope(a) == pytest.approx((up - down) / 2e-5, rel=1e-5)
        moved = line.move(0.3)
        np.testing.assert_array_equal(moved, theta + 0.3 * direction)
        found = source.gradient(moved)
        assert sum(p.count for p in products) == before + len(products)  # X d, then X^T r
        fresh = by_samples(X, objective)[0].gradient(moved)
        np.testing.assert_allclose(found.value, fresh.value, rtol=1e-9, atol=1e-12)


def solution(X, objective):
    """The minimum of least squares by the normal equations."""
    n = len(X)
    A = np.hstack([X, np.ones((n, 1))]) if objective.intercept else X
    penalty = objective.l2 * n * np.eye(A.shape[1])
    if objective.intercept:
        penalty[-1, -1] = 0
    return np.linalg.solve(A.T @ A + penalty, A.T @ objective.targets)


RULES = [
    ("line", None),
    ("line", "none"),
    ("line", "heavy-ball"),
    (0.3, "none"),
    (0.05, "heavy-ball"),
    (0.3, "nesterov"),
]


@pytest.mark.parametrize(("step", "momentum"), RULES)
@pytest.mark.parametrize("form", [by_samples, by_gram])
@pytest.mark.parametrize("l2", [0.0, 0.1])
def test_every_rule_reaches_the_normal_equations(form, step, momentum, l2):
    X, objective = problem(l2=l2)
    source = form(X, objective)[0]
    descent = Descent(source, make_advance(step, momentum, exact=True), Stop(gradient_norm=1e-7))
    ending = descent.run(lambda at: None)
    assert ending.state == "converged"
    np.testing.assert_allclose(ending.at.theta, solution(X, objective), atol=1e-5)


def test_conjugate_directions_end_after_as_many_iterations_as_there_are_parameters():
    X, objective = problem(d=9)
    source, product = by_gram(X, objective)
    stop = Stop(gradient_norm=1e-9)
    ending = Descent(source, make_advance(exact=True), stop).run(lambda at: None)
    assert ending.state == "converged" and ending.at.iteration <= 10 + 2
    assert product.count == ending.at.iteration  # one product each


@pytest.mark.parametrize("model", ["logistic", "multinomial"])
def test_a_classifier_reaches_the_minimum(model):
    X, objective = problem(model, l2=0.02)
    source, there, back = by_samples(X, objective)
    ending = Descent(source, make_advance(exact=True), Stop(gradient_norm=1e-8)).run(
        lambda at: None
    )
    assert ending.state == "converged"
    assert there.count <= ending.at.iteration + ending.at.iteration // REFRESH + 1
    assert back.count == ending.at.iteration + 1
    rng = np.random.default_rng(3)
    least = objective_at(X, objective, ending.at.theta)
    for _ in range(50):
        near = ending.at.theta + 0.01 * rng.standard_normal(ending.at.theta.shape)
        assert objective_at(X, objective, near) > least


def blocks_missing(rows, count, rng):
    """One of ten blocks of rows missing in each of `count` products, each equally often."""
    order = np.concatenate([rng.permutation(10) for _ in range(count // 10)])
    blocks = np.arange(rows) * 10 // rows
    return [blocks == block for block in order]


def test_leaving_out_samples_is_unbiased():
    X, objective = problem(n=200)
    theta = np.random.default_rng(1).standard_normal(objective.shape(9))
    rng = np.random.default_rng(2)
    source = by_samples(X, objective, samples=blocks_missing(200, 40, rng))[0]
    found = [source.gradient(theta, 0.1) for _ in range(40)]
    assert all(g.recovered == 0.9 and not g.exact for g in found)
    exact = by_samples(X, objective)[0].gradient(theta)
    mean = np.mean([g.value for g in found], axis=0)
    np.testing.assert_allclose(mean, exact.value, rtol=1e-10)
    assert np.mean([g.loss for g in found]) == pytest.approx(exact.loss, rel=1e-10)
    assert np.linalg.norm(found[0].value - exact.value) > 1e-3


@pytest.mark.parametrize("form", ["samples", "gram"])
def test_leaving_out_coordinates_shortens_the_mean_and_descends_every_time(form):
    X, objective = problem(d=20, intercept=False)
    theta = np.random.default_rng(1).standard_normal((20, 1))
    gone = blocks_missing(20, 40, np.random.default_rng(2))
    source = (
        by_samples(X, objective, coordinates=gone)[0]
        if form == "samples"
        else by_gram(X, objective, gone)[0]
    )
    exact = by_samples(X, objective)[0].gradient(theta)
    found = [source.gradient(theta, 0.1) for _ in range(40)]
    np.testing.assert_allclose(
        np.mean([g.value for g in found], axis=0), 0.9 * exact.value, rtol=1e-10
    )
    L = np.linalg.eigvalsh(X.T @ X).max() / len(X)
    for g in found:
        there = objective_at(X, objective, theta - g.value / L)
        bound = exact.loss - (g.value**2).sum() / (2 * L)
        assert there <= bound + 1e-12


@pytest.mark.parametrize("form", ["samples", "gram"])
def test_a_tightening_tolerance_still_reaches_the_minimum(form):
    X, objective = problem(d=20)
    rng = np.random.default_rng(5)
    gone = blocks_missing(20, 200, rng)
    source = (
        by_samples(X, objective, samples=blocks_missing(200, 200, rng), coordinates=gone)[0]
        if form == "samples"
        else by_gram(X, objective, gone)[0]
    )
    seen = []
    descent = Descent(
        source,
        make_advance(0.3, exact=False),
        Stop(gradient_norm=1e-6, iterations=3000),
        Tolerance(0.2, tighten=0.99),
    )
    ending = descent.run(seen.append)
    assert ending.state == "converged"
    assert seen[0].tolerance == 0.2 and seen[-1].tolerance < 0.01 and not seen[1].exact
    assert seen[-1].exact  # an exact gradient confirms what a partial one promised
    np.testing.assert_allclose(ending.at.theta, solution(X, objective), atol=1e-4)


def test_a_line_search_with_a_tolerance_descends():
    X, objective = problem(d=20)
    rng = np.random.default_rng(5)
    source = by_gram(X, objective, blocks_missing(20, 200, rng))[0]
    descent = Descent(source, make_advance(exact=False), Stop(iterations=60), Tolerance(0.1))
    seen = []
    descent.run(seen.append)
    losses = [objective_at(X, objective, at.theta) for at in seen]
    assert all(later <= earlier for earlier, later in itertools.pairwise(losses))
    least = objective_at(X, objective, solution(X, objective))
    assert losses[-1] - least < 1e-3 * (losses[0] - least)


@pytest.mark.parametrize("step", [5.0, 1e300])
@pytest.mark.parametrize("momentum", ["none", "heavy-ball", "nesterov"])
def test_a_step_that_diverges_ends_at_the_best_iterate(step, momentum):
    X, objective = problem()
    seen = []
    descent = Descent(
        by_samples(X, objective)[0], make_advance(step, momentum, exact=True), Stop(iterations=99)
    )
    ending = descent.run(seen.append)
    assert ending.state == "diverged" and "smaller step" in ending.message
    assert ending.at.loss == min(at.loss for at in seen)
    assert all(at.finite for at in seen) and ending.at.finite


@pytest.mark.parametrize("stopped_at", [0, 1, 5])
@pytest.mark.parametrize(("step", "momentum"), RULES)
def test_going_on_from_an_iterate_is_what_would_have_been(step, momentum, stopped_at):
    X, objective = problem()

    def descent(iterations):
        advance = make_advance(step, momentum, exact=True)
        return Descent(by_samples(X, objective)[0], advance, Stop(iterations=iterations))

    whole = []
    end = descent(8).run(whole.append)
    kept = whole[stopped_at]
    rest = []
    resumed = descent(8).run(rest.append, resume=kept, first_loss=whole[0].loss)
    assert [at.iteration for at in rest] == list(range(stopped_at + 1, 9))
    assert resumed.at.dollars >= kept.dollars
    np.testing.assert_allclose(resumed.at.theta, end.at.theta, rtol=1e-9)


def test_limits_and_goals():
    X, objective = problem()
    clock = iter(range(1000))

    def run(**limits):
        descent = Descent(
            by_gram(X, objective)[0],
            make_advance(0.1, exact=True),
            Stop(**limits),
            clock=lambda: float(next(clock)),
        )
        return descent.run(lambda at: None)

    assert run(seconds=10).state == "seconds"
    spent = run(dollars=3.5)
    assert spent.state == "dollars" and spent.at.dollars <= 3.5
    assert run(iterations=4).at.iteration == 4
    goal = run(loss=objective_at(X, objective, solution(X, objective)) * 2)
    assert goal.state == "converged"


def test_a_product_that_fails_ends_with_what_there_is():
    X, objective = problem()
    source, product = by_gram(X, objective)
    works = product.__call__
    failing = {"state": "failed"}

    def fails_late(x, tolerance=0.0):
        if product.count >= 3:
            raise ProductFailed("run r: not reached", failing["state"])
        return works(x, tolerance)

    source._product = fails_late
    seen = []
    descent = Descent(source, make_advance(0.1, exact=True), Stop(iterations=9))
    ending = descent.run(seen.append)
    assert (ending.state, ending.at.iteration, len(seen)) == ("failed", 3, 4)
    product.count, failing["state"] = 0, "stopped"
    assert descent.run(lambda at: None).state == "stopped"


@pytest.mark.parametrize("minimum", [1e-6, 0.3, 1.0, 7.0, 1e5])
@pytest.mark.parametrize("guess", [1e-3, 1.0, 50.0])
def test_line_search_on_a_parabola_and_on_one_with_a_wall(minimum, guess):
    def line(wall):
        def value(a):
            return (a - minimum) ** 2 if a < wall else np.inf

        return Line(value, lambda a: 2 * (a - minimum) if a < wall else np.inf, np.asarray)

    assert search_line(line(np.inf), guess) == pytest.approx(minimum, rel=0.002)
    assert 0 < search_line(line(minimum * 1.5), guess) <= minimum * 1.002
    assert search_line(replace(line(np.inf), slope=lambda a: 1.0), guess) == 0
    assert search_line(replace(line(np.inf), slope=lambda a: np.nan), guess) == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Tolerance(1.0), r"\[0, 1\)"),
        (lambda: Tolerance(-0.1), r"\[0, 1\)"),
        (lambda: Tolerance(float("nan")), r"\[0, 1\)"),
        (lambda: Tolerance(0.1, tighten=0), "tighten"),
        (lambda: make_advance(0, exact=True), "positive"),
        (lambda: make_advance(float("inf"), exact=True), "positive"),
        (lambda: make_advance("far", exact=True), "step"),
        (lambda: make_advance("line", "nesterov", exact=True), "fixed step"),
        (lambda: make_advance(0.1, "conjugate", exact=True), "nesterov"),
        (lambda: make_advance(0.1, "inertia", exact=True), "momentum"),
        (lambda: make_advance(0.1, "heavy-ball", 1.0, exact=True), "beta"),
        (lambda: Stop(dollars=0), "dollars"),
        (lambda: Stop(iterations=0), "iterations"),
        (lambda: Stop(seconds=float("nan")), "seconds"),
        (lambda: Stop(loss=float("nan")), "loss"),
    ],
)
def test_bad_rules_are_refused(call, words):
    with pytest.raises(BadInput, match=words):
        call()


def test_the_gram_matrix_trains_no_classifier():
    X, objective = problem("logistic")
    with pytest.raises(BadInput, match="transpose"):
        by_gram(X, objective)
