"""When may the product behind a gradient step be stopped, and when is an exact one due again?

f is smooth with constant L and curvature mu (kappa = L / mu), g its gradient at theta, and the step
theta' = theta - (g + e) / L is made with an estimate whose error e has E ||e||^2 <= eta^2 ||g||^2.

1. *Descent.* f(theta') <= f - ||g||^2 / (2 L) + ||e||^2 / (2 L), whatever e is, biased or not and
   depending on theta or not: the smoothness bound with g + e in place of g, in which the terms
   g . e cancel. So E f(theta') - f* <= (1 - (1 - eta^2) / kappa) (f - f*): an estimate makes the
   share **1 - eta^2** of an exact step's guaranteed decrease (`decrease`). For eta < 1 it converges
   at the same rate but for that factor, to the minimum itself: there is no floor, because the error
   shrinks with the gradient. (An unbiased estimate with the shorter step 1 / (L (1 + eta^2)) makes
   1 / (1 + eta^2); that is what shrinkage does by itself, and it holds for eta > 1 too.)
2. *Drift.* With the difference form to an exact product at theta_ref the error is eps, the error of
   the code's estimator (sqrt(1 - m / s) for least squares and m of s answers), times the change:
   for a quadratic ||e|| = eps ||g - g_ref||, so eta = eps * drift, drift = ||g - g_ref|| / ||g||.
   Without a reference it is eps ||A theta|| / ||g||, which grows without bound near the minimum.
3. *When to stop a product.* With R, the decrease per unit of cost that training makes on average, a
   step that stops at m answers, at cost c_m, is worth 1 - (eps_m drift)^2 - R c_m: take the m where
   that is largest (`best_stop`). Waiting for one more answer pays while drift^2 / s > R (c_m+1 -
   c_m) for least squares: the more so, the larger the drift.
4. *When to refresh.* A cycle is an exact step (decrease 1, cost C) and the steps that refer to it,
   whose drift grows. Its rate is (sum of decreases) / (sum of costs), largest when steps are added
   as long as their own rate exceeds that of the cycle so far, and no longer (`Cycle.goes_on`): the
   marginal value theorem, with cost in seconds or in dollars. As c_1 < C, and drift -> 0 in the
   slow phase of an ill-conditioned problem, cycles get longer there.

Momentum and conjugate directions add errors up over steps and are not covered by 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

__all__ = [
    "Cycle",
    "Stop",
    "allowed_error",
    "best_stop",
    "decrease",
    "in_turn",
    "two_product_error",
]

MOST_ALLOWED = 0.9
"""What a product is asked for at most, where it may as well be off by more."""


def decrease(eta: float) -> float:
    """The share 1 - eta^2 of an exact step's guaranteed decrease, 0 from eta = 1 on.

    eta: ||e|| / ||g||, rms. Exact for the bound, pessimistic for what happens: a biased estimate
    may do better, never worse.
    """
    return max(0.0, 1.0 - eta * eta)


def allowed_error(eta: float, gradient: float, product: float) -> float:
    """The relative error X of a product A x that keeps ||e|| <= eta ||g||: for `until="error=X"`,
    `MOST_ALLOWED` at most.

    gradient, product: ||g|| and ||A x||, in the same units.
    """
    return min(eta * gradient / product, MOST_ALLOWED) if product > 0 else MOST_ALLOWED


def two_product_error(
    first: float, second: float, *, through: float, change: float, back: float
) -> float:
    """Bound of ||e|| for the gradient X^T r, r = X theta - y, by two products that are estimates.

    first, second : relative errors of the estimates of X delta and X^T (r - r_ref); change =
    ||X delta||; back = ||X^T (r - r_ref)||; through : how much of an error of r passes X^T, at most
    ||X||, and for errors that have nothing to do with X's columns about ||X||_F / sqrt(n).

    e = X^T e_1 + e_2, with ||X^T e_1|| <= through * first * change and ||e_2|| <= second *
    (back + ||X^T e_1||), added up as the worst case does. The signs of a code make the error of the
    unbiased estimator (`estimator="paper"`) such a one, so X^T averages it out over the n rows and
    the first product may stop far earlier than the second; that of least squares is not: its bias
    (1 - m / s) X delta passes X^T whole.
    """
    passed = through * first * change
    return passed + second * (back + passed)


@dataclass(frozen=True)
class Stop:
    """Where to stop a product: at `arrivals` answers; `eta` is the error of the gradient that is
    foretold then, relative to its norm, `cost` what it has cost, `decrease` what the step is good
    for. `bearable` >= eta is the error up to which it is better to stop there than to wait for all
    answers, eta^2 = R (c_last - c_m), should the drift be larger than foretold."""

    arrivals: int
    eta: float
    cost: float
    decrease: float
    bearable: float = 0.0

    @property
    def rate(self) -> float:
        """Decrease per unit of cost."""
        return self.decrease / self.cost if self.cost > 0 else math.inf


def best_stop(drift: float, errors: Sequence[float], costs: Sequence[float], rate: float) -> Stop:
    """The number of answers m, from 1 on, at which 1 - (drift eps_m)^2 - rate c_m is largest.

    errors, costs : eps_m and c_m for m = 1, 2, ...; costs positive, in seconds or dollars; rate :
    decrease per unit of cost elsewhere (0: as far as the answers go). Cost: O(number of answers).
    """
    if len(errors) != len(costs) or not errors:
        raise ValueError(
            f"errors and costs must be as many, and one at least: {len(errors)}, {len(costs)}"
        )
    stops = [
        _stop(m, drift * error, cost, rate * max(0.0, costs[-1] - cost))
        for m, (error, cost) in enumerate(zip(errors, costs, strict=True), 1)
    ]
    return max(stops, key=lambda stop: stop.decrease - rate * stop.cost)


def in_turn(first: Stop, second: Stop) -> Stop:
    """Two products of one gradient, one after the other: errors that have nothing to do with each
    other add up by squares, costs add up; `arrivals` are those of the second."""
    eta = math.hypot(first.eta, second.eta)
    bearable = math.hypot(first.bearable, second.bearable)
    return Stop(second.arrivals, eta, first.cost + second.cost, decrease(eta), bearable)


def _stop(arrivals: int, eta: float, cost: float, worth: float) -> Stop:
    return Stop(arrivals, eta, cost, decrease(eta), max(eta, math.sqrt(worth)))


@dataclass(frozen=True)
class Cycle:
    """An exact step of cost `cost` and the steps since that refer to it; decreases add up to
    `decreases`. `earlier` is the rate of the cycle before, 0 without one."""

    cost: float
    decreases: float = 1.0
    steps: int = 1
    earlier: float = 0.0

    @property
    def rate(self) -> float:
        """Decrease per unit of cost so far."""
        return self.decreases / self.cost if self.cost > 0 else math.inf

    def goes_on(self, stop: Stop) -> bool:
        """Whether one more step that refers to this exact one raises the rate; else refresh."""
        return stop.rate > self.rate

    def after(self, eta: float, cost: float) -> Cycle:
        """With one more step of this error and cost."""
        decreases = self.decreases + decrease(eta)
        return replace(self, cost=self.cost + cost, decreases=decreases, steps=self.steps + 1)

    def refreshed(self, cost: float) -> Cycle:
        """The cycle that begins with a new exact step."""
        return Cycle(cost, earlier=self.rate)
