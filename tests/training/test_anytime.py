"""The mathematics of anytime steps: bounds against simulation, and the rules at their edges."""

from __future__ import annotations

import math

import numpy as np
import pytest

from polarcodes import make_code
from polarcodes.estimators import estimate_product
from polarlambda.training.anytime import (
    Cycle,
    Stop,
    allowed_error,
    best_stop,
    decrease,
    two_product_error,
)
from polarlambda.training.anytime_steps import AnytimeSteps


def quadratic(condition=50.0, d=40, seed=0):
    """(H, L): eigenvalues from 1 to 1 / condition, L = 1."""
    rng = np.random.default_rng(seed)
    Q = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return (Q * np.logspace(0, -np.log10(condition), d)) @ Q.T


@pytest.mark.parametrize("eta", [0.0, 0.3, 0.9, 2.0])
@pytest.mark.parametrize("how", ["against", "along", "across", "random"])
def test_the_descent_bound_holds_for_every_error_biased_or_not(eta, how):
    """f(theta') <= f - (||g||^2 - ||e||^2) / (2 L), with equality for e where H = L."""
    H, rng = quadratic(), np.random.default_rng(1)
    for _ in range(50):
        theta = rng.standard_normal(40)
        g = H @ theta
        directions = {
            "against": -g,
            "along": g,
            "across": H @ g - (g @ H @ g) / (g @ g) * g,
            "random": rng.standard_normal(40),
        }
        e = directions[how] * eta * np.linalg.norm(g) / np.linalg.norm(directions[how])
        new = theta - (g + e)
        before, after = (0.5 * t @ H @ t for t in (theta, new))
        assert after <= before - (g @ g - e @ e) / 2 + 1e-12
        assert after <= before - decrease(eta) * (g @ g) / 2 + max(0, eta**2 - 1) * (g @ g) / 2


def test_errors_that_shrink_with_the_gradient_leave_no_floor():
    """Contraction by 1 - (1 - eta^2) / kappa a step, down to where float64 ends."""
    H, rng, eta = quadratic(20.0), np.random.default_rng(2), 0.7
    theta = rng.standard_normal(40)
    first = 0.5 * theta @ H @ theta
    steps = 600
    for _ in range(steps):
        g = H @ theta
        e = rng.standard_normal(40)
        theta = theta - g - e * eta * np.linalg.norm(g) / np.linalg.norm(e)
    assert 0.5 * theta @ H @ theta <= first * (1 - decrease(eta) / 20) ** steps
    assert (1 - decrease(eta) / 20) ** steps < 1e-6


def test_the_drift_of_a_quadratic_is_the_change_of_its_gradient():
    """||e|| = eps ||g - g_ref||: what an estimate of A (theta - theta_ref) is off by."""
    code = make_code("hadamard", workers=32, data_blocks=24, seed=0)
    H, rng = quadratic(d=48), np.random.default_rng(3)
    reference = rng.standard_normal(48)
    theta = reference - 0.5 * H @ reference
    change = H @ (theta - reference)
    errors = []
    for _ in range(200):
        S = np.sort(rng.permutation(32)[:12])
        found = estimate_product(code, S, code.encode(change.reshape(24, 2))[S])
        errors.append(np.linalg.norm(found.value.reshape(-1) - change))
    expected = math.sqrt(1 - 12 / 24) * np.linalg.norm(change)
    assert np.sqrt(np.mean(np.square(errors))) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("method", ["sketch", "least-squares"])
def test_an_error_of_the_first_product_passes_the_second_by_its_columns_only(method):
    """X^T averages the unbiased estimator's error out; the bias of least squares passes whole."""
    rng = np.random.default_rng(4)
    n, d, m, s = 2400, 20, 16, 24
    X = rng.standard_normal((n, d))
    u = X @ rng.standard_normal(d)
    passed, first = [], []
    for seed in range(20):
        code = make_code("hadamard", workers=32, data_blocks=s, seed=seed)
        S = np.sort(rng.permutation(32)[:m])
        found = estimate_product(code, S, code.encode(u.reshape(s, -1))[S], method=method)
        error = found.value.reshape(-1) - u
        first.append(np.linalg.norm(error) / np.linalg.norm(u))
        passed.append(np.linalg.norm(X.T @ error))
    typical = np.linalg.norm(X) / math.sqrt(n)
    worst = float(np.linalg.norm(X, 2))
    size, back = float(np.linalg.norm(u)), float(np.linalg.norm(X.T @ u))
    rms = float(np.sqrt(np.mean(np.square(passed))))
    eps = float(np.sqrt(np.mean(np.square(first))))
    assert rms <= two_product_error(eps, 0.0, through=worst, change=size, back=back)
    expected = two_product_error(eps, 0.0, through=typical, change=size, back=back)
    if method == "sketch":
        assert rms == pytest.approx(expected, rel=0.25)
    else:
        assert rms == pytest.approx((1 - m / s) * back, rel=0.15) and rms > 2 * expected
    with_second = two_product_error(eps, 0.5, through=typical, change=size, back=back)
    assert with_second == pytest.approx(1.5 * expected + 0.5 * back)


def test_what_a_product_may_be_off_by():
    assert allowed_error(0.5, 2.0, 10.0) == 0.1
    assert allowed_error(0.5, 2.0, 0.0) == allowed_error(0.5, 9.0, 1.0) == 0.9
    assert (decrease(0.5), decrease(1.0), decrease(3.0)) == (0.75, 0.0, 0.0)


ERRORS = [math.sqrt(1 - m / 8) for m in range(1, 8)]
COSTS = [2.0 + 0.2 * m for m in range(1, 8)]


def test_small_changes_need_the_first_answer_and_large_ones_the_last():
    assert best_stop(0.01, ERRORS, COSTS, 0.3).arrivals == 1
    assert best_stop(1.0, ERRORS, COSTS, 0.3).arrivals == 7
    arrivals = [best_stop(drift, ERRORS, COSTS, 0.3).arrivals for drift in np.linspace(0, 1, 30)]
    assert arrivals == sorted(arrivals)


def test_one_more_answer_is_waited_for_while_it_is_worth_more_than_it_costs():
    """drift^2 / s > R (c_m+1 - c_m): with evenly spaced answers all or nothing."""
    price = 0.2  # of waiting for one answer
    for rate in (0.1, 0.3):
        threshold = math.sqrt(8 * rate * price)
        assert best_stop(0.95 * threshold, ERRORS, COSTS, rate).arrivals == 1
        assert best_stop(1.05 * threshold, ERRORS, COSTS, rate).arrivals == 7


def test_what_is_bearable_is_what_waiting_for_all_would_cost():
    stop = best_stop(0.01, ERRORS, COSTS, 0.3)
    assert stop.bearable == pytest.approx(math.sqrt(0.3 * (COSTS[-1] - COSTS[0])))
    assert best_stop(1.0, ERRORS, COSTS, 0.0).bearable == best_stop(1.0, ERRORS, COSTS, 0.0).eta


@pytest.mark.parametrize(("errors", "costs"), [([], []), ([0.1], [1.0, 2.0])])
def test_errors_without_costs_are_refused(errors, costs):
    with pytest.raises(ValueError, match="as many"):
        best_stop(0.1, errors, costs, 1.0)


@pytest.mark.parametrize("growth", [0.05, 0.2, 0.6])
def test_a_cycle_ends_where_its_rate_is_largest(growth):
    """Against all lengths by brute force, for a drift that grows by a fixed amount a step."""
    exact, estimate = 3.0, 2.0
    etas = [growth * k for k in range(1, 200)]
    rates = []
    for length in range(len(etas)):
        gained = 1 + sum(decrease(eta) for eta in etas[:length])
        rates.append(gained / (exact + estimate * length))
    cycle, length = Cycle(exact), 0
    while cycle.goes_on(Stop(1, etas[length], estimate, decrease(etas[length]))):
        cycle = cycle.after(etas[length], estimate)
        length += 1
    assert length == int(np.argmax(rates))
    assert cycle.rate == pytest.approx(max(rates)) and cycle.steps == length + 1
    assert cycle.refreshed(exact) == Cycle(exact, earlier=cycle.rate)


def test_steps_begin_with_exact_products_until_the_curvature_is_known():
    steps = AnytimeSteps()
    assert steps.plan(0.1, 1.0, ERRORS, COSTS) is None
    steps = steps.exact(4.0, 0.0, 0.0)
    assert steps.plan(0.1, 1.0, ERRORS, COSTS) is None
    steps = steps.exact(4.0, 0.5, 0.25)
    plan = steps.plan(0.1, 1.0, ERRORS, COSTS)
    assert plan is not None and plan.eta == pytest.approx(0.05 * ERRORS[plan.arrivals - 1])
    later = steps.estimated(0.1, 2.5, 0.1, 0.02)
    assert later.curvature == pytest.approx(0.2) and later.cycle.steps == 2
    assert steps.plan(100.0, 1.0, ERRORS, COSTS) is None, "the drift is too large: refresh"
    assert steps.plan(0.1, 0.0, ERRORS, COSTS) is None
    with pytest.raises(ValueError, match="exact product"):
        AnytimeSteps().estimated(0.1, 1.0, 1.0, 1.0)
