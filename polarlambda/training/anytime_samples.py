"""Anytime steps by two products, X w and then X^T r: for every model, without a Gram matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polarcodes import InvalidCode
from polarcodes.estimators import choose_estimator, expected_error
from polarlambda.training.anytime import Stop, allowed_error, best_stop, in_turn
from polarlambda.training.anytime_steps import MOST_ERROR, AnytimeSteps
from polarlambda.training.arrival_times import ArrivalTimes
from polarlambda.training.gradients import Gradient, Spent
from polarlambda.training.models import Array
from polarlambda.training.objective import Objective
from polarlambda.training.products import Product

if TYPE_CHECKING:
    from polarcodes import ErasureCode
    from polarlambda.result import Result


class Factor:
    """One of the two products: its runs, the answers' errors and times, and what was last exact.

    unbiased : the code has the estimator without bias, whose error the other product averages out.
    change : ||A (x - x_ref)|| over ||w - w_ref|| at the latest step, 0 before there is one.
    """

    def __init__(self, product: Product, code: ErasureCode, *, unbiased: bool) -> None:
        method = "sketch" if unbiased and _has_sketch(code) else "best"
        self.estimator = "paper" if method == "sketch" else "best"
        self.errors = [expected_error(code, m, method) for m in range(1, code.data_blocks)]
        self.change = 0.0
        self.size = 0.0
        self.exact: tuple[str, Array] | None = None  # run, A x
        self._product = product
        self._times = ArrivalTimes()

    def stop(self, drift: float, rate: float) -> Stop | None:
        """Where to stop the next run; None while it is not known when answers come."""
        costs = self._times.forecast(len(self.errors))
        return best_stop(drift, self.errors[: len(costs)], costs, rate) if costs else None

    def run(self, x: Array, bearable: float | None) -> Result:
        """Exact, or as a difference to the exact one, up to the relative error `bearable`."""
        hear = self._times.begin()
        if bearable is None or self.exact is None:
            result = self._product.run(x, "exact", hear=hear)
        else:
            until, run = f"error={bearable:.6g}", self.exact[0]
            result = self._product.run(x, until, estimator=self.estimator, reference=run, hear=hear)
        self._times.end(result.seconds)
        return result

    def note(self, result: Result, distance: float) -> float:
        """Take in how large A x and its change were; returns the rms of what is off in it."""
        value = np.asarray(result.value, np.float64)
        self.size = float(np.linalg.norm(value))
        lost = (result.error or 0.0) * self.size
        if self.exact is not None and distance > 0:
            seen = float(np.linalg.norm(value - self.exact[1])) ** 2
            # a projection leaves the rest at right angles; without bias the error comes on top
            whole = seen - lost**2 if self.estimator == "paper" else seen + lost**2
            if whole > 0:
                self.change = math.sqrt(whole) / distance
        return lost


@dataclass(frozen=True)
class _Reference:
    """Where both products were last exact."""

    theta: Array
    weights: Array
    gradient: Array
    loss: float


class AnytimeSamples:
    """The gradient X^T r (+ l2 w) at tolerance > 0 by two products that are estimates, else exact.

    Both are taken as differences to the last exact ones and stop at what the step can bear
    (`polarlambda.training.anytime`). The first uses the estimator **without bias**: its error goes
    through X^T, which averages it out over the n samples, where the bias of least squares would
    pass whole. With |loss''| <= c and a step of at most n / (c lambda_max(X^T X)) what passes is
    c ||X||_F / sqrt(n) <= sqrt(c d / step) times the error, over n: d columns share at most d
    lambda_max. The second uses the estimate of least error, biased towards no change, as
    `AnytimeGram` does. `tolerance` only says that estimates are allowed.

    The loss is that of the trapezoidal rule from the last exact point, exact for quadratics and of
    third order in the distance for the others.

    For fixed steps without momentum. Cost: two products for a gradient.
    """

    def __init__(
        self,
        products: tuple[Product, Product],
        codes: tuple[ErasureCode, ErasureCode],
        features: int,
        objective: Objective,
        step: float,
    ) -> None:
        self._forth = Factor(products[0], codes[0], unbiased=True)
        self._back = Factor(products[1], codes[1], unbiased=False)
        self._objective = objective
        self._shape = objective.shape(features)
        curvature, n = objective.model.curvature, objective.samples
        passes = features if self._forth.estimator == "paper" else n  # of lambda_max
        self._through = math.sqrt(curvature * passes / step) / n
        self._steps = AnytimeSteps()
        self._reference: _Reference | None = None
        self._norm = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        """(p, k) of theta."""
        return self._shape

    def gradient(self, theta: Array, tolerance: float = 0.0) -> Gradient:
        """The gradient at theta: an estimate where tolerance > 0 and that is worth it."""
        objective, known = self._objective, self._reference
        weights, biases = objective.split(theta)
        distance = float(np.linalg.norm(weights - known.weights)) if known else 0.0
        stops = self._plan(distance) if known is not None and tolerance > 0 else None
        spent, lost, exact, scores = Spent(), 0.0, True, np.zeros(objective.targets.shape)
        if weights.any():
            allowed = stops and allowed_error(
                stops[0].bearable, self._norm / self._through, self._forth.size
            )
            first = self._forth.run(weights, allowed)
            lost = self._through * self._forth.note(first, distance)
            scores, exact, spent = np.asarray(first.value, np.float64), first.exact, _spent(first)
        residual = objective.residual(scores + biases)
        allowed = stops and allowed_error(stops[1].bearable, self._norm, self._back.size)
        second = self._back.run(residual, allowed)
        lost = math.hypot(lost, self._back.note(second, distance))
        slope = np.asarray(second.value, np.float64)
        spent, exact = spent + _spent(second), exact and second.exact
        value = objective.join(slope + objective.l2 * weights, residual.sum(axis=0, keepdims=True))
        self._norm = float(np.linalg.norm(value))
        if exact or known is None:
            loss = objective.loss(scores + biases) + objective.penalty(theta)
            if weights.any():
                self._forth.exact, self._back.exact = (first.run, scores), (second.run, slope)
                change = self._back.change * distance
                self._steps = self._steps.exact(spent.seconds, distance, change)
                self._reference = _Reference(theta.copy(), weights.copy(), value, loss)
            return Gradient(value, loss, spent=spent)
        eta = lost / self._norm if self._norm else 0.0
        change = self._back.change * distance
        self._steps = self._steps.estimated(eta, spent.seconds, distance, change)
        loss = known.loss + float(((theta - known.theta) * (known.gradient + value)).sum()) / 2
        return Gradient(value, loss, exact=False, error=eta, spent=spent)

    def _plan(self, distance: float) -> tuple[Stop, Stop] | None:
        """Where both products may stop; None if they have to be exact."""
        cycle = self._steps.cycle
        if cycle is None or self._steps.curvature is None or self._norm <= 0:
            return None
        rate = max(cycle.rate, cycle.earlier)
        drift = distance / self._norm
        first = self._forth.stop(self._through * self._forth.change * drift, rate)
        second = self._back.stop(self._back.change * drift, rate)
        if first is None or second is None:
            return None
        both = in_turn(first, second)
        return (first, second) if both.eta <= MOST_ERROR and cycle.goes_on(both) else None


def _spent(result: Result) -> Spent:
    return Spent(result.seconds, result.cost or 0.0, (result.run,))


def _has_sketch(code: ErasureCode) -> bool:
    try:
        choose_estimator(code, (), "sketch")
    except InvalidCode:
        return False
    return True
