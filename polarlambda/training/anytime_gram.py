"""Least squares by anytime steps: products with W = X^T X that stop at what the step can bear."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from polarcodes.estimators import expected_error
from polarlambda.training.anytime import allowed_error
from polarlambda.training.anytime_steps import AnytimeSteps
from polarlambda.training.arrival_times import ArrivalTimes
from polarlambda.training.gradients import Gradient, Spent
from polarlambda.training.gram import GramGradient
from polarlambda.training.models import Array
from polarlambda.training.products import Product, Rows

if TYPE_CHECKING:
    from polarcodes import ErasureCode
    from polarlambda.result import Result

ESTIMATES = 0.5
"""A tolerance that allows estimates, as any does that is not 0."""


@dataclass(frozen=True)
class _Reference:
    """The last exact product W w of run `run`, and the gradient and the loss at its theta."""

    run: str
    theta: Array
    weights: Array
    product: Array
    gradient: Array
    loss: float


class AnytimeGram:
    """The gradient of least squares or ridge at tolerance > 0 as an estimate, else exact.

    Every product is either exact, and then what the next ones refer to, or W (w - w_ref), stopped
    at the error that its step can bear (`polarlambda.training.anytime`): the more answers, the
    larger the change of the gradient since. The estimate of the change is that of least predicted
    error, which is **biased** towards none: the step is then between the true gradient and the one
    of the reference. That is harmless because the descent of a step 1 / L depends on the size of
    the error alone, and refreshing bounds that. `tolerance` only says that estimates are allowed.

    The loss comes with the gradient, by the trapezoidal rule, which is exact for quadratics:
    f(theta) = f_ref + (theta - theta_ref) . (g_ref + g) / 2, off by |(theta - theta_ref) . e| / 2.

    For fixed steps without momentum: conjugate directions need exact products, and momentum adds
    errors up. Cost: one product for a gradient.
    """

    def __init__(
        self,
        product: Product,
        code: ErasureCode,
        gram: GramGradient,
    ) -> None:
        self._product, self._gram = product, gram
        self._errors = [expected_error(code, m) for m in range(1, code.data_blocks)]
        self._times = ArrivalTimes()
        self._steps = AnytimeSteps()
        self._reference: _Reference | None = None
        self._latest = 0.0, 0.0  # ||g||, ||W w||

    @property
    def shape(self) -> tuple[int, int]:
        """(p, k) of theta."""
        return self._gram.shape

    def gradient(self, theta: Array, tolerance: float = 0.0) -> Gradient:
        """The gradient at theta: an estimate where tolerance > 0 and that is worth it."""
        weights, n, known = self._gram.weights(theta), self._gram.samples, self._reference
        if not weights.any():
            return self._gram.assembled(theta, Rows(np.zeros_like(weights)))
        distance = float(np.linalg.norm(weights - known.weights)) if known else 0.0
        bearable = self._bearable(distance) if known is not None and tolerance > 0 else 0.0
        if known is not None and bearable > 0:
            result = self._run(weights, f"error={bearable:.6g}", known.run)
        else:
            result = self._run(weights, "exact", None)
        value = np.asarray(result.value, np.float64)
        spent = Spent(result.seconds, result.cost or 0.0, (result.run,))
        found = self._gram.assembled(theta, Rows(value, None, spent))
        norm, product = float(np.linalg.norm(found.value)), float(np.linalg.norm(value))
        self._latest = norm, product
        lost = (result.error or 0.0) * product
        change = 0.0
        if known is not None:  # an estimate is a projection: what is lost is at right angles to it
            change = math.hypot(float(np.linalg.norm(value - known.product)), lost) / n
        if result.exact or known is None:
            self._steps = self._steps.exact(result.seconds, distance, change)
            self._reference = _Reference(
                result.run, theta.copy(), weights.copy(), value, found.value, found.loss
            )
            return found
        eta = lost / n / norm if norm else 0.0
        self._steps = self._steps.estimated(eta, result.seconds, distance, change)
        loss = (
            known.loss + float(((theta - known.theta) * (known.gradient + found.value)).sum()) / 2
        )
        return Gradient(found.value, loss, exact=False, error=eta, spent=spent)

    def _bearable(self, distance: float) -> float:
        """The relative error at which the next product may stop; 0 if it has to be exact."""
        norm, product = self._latest
        costs = self._times.forecast(len(self._errors))
        if not costs:
            return 0.0
        stop = self._steps.plan(distance, norm, self._errors[: len(costs)], costs)
        if stop is None:
            return 0.0
        return allowed_error(stop.bearable, norm * self._gram.samples, product)

    def _run(self, weights: Array, until: str, reference: str | None) -> Result:
        hear = self._times.begin()
        result = self._product.run(weights, until, reference=reference, hear=hear)
        self._times.end(result.seconds)
        return result
