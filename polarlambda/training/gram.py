"""The gradient of least squares by one coded product with W = X^T X (arXiv 1811.09271)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from polarlambda.errors import BadInput
from polarlambda.training.gradients import Gradient, Line
from polarlambda.training.models import Array
from polarlambda.training.objective import Objective
from polarlambda.training.products import Rows
from polarlambda.training.samples import REFRESH, Multiply


@dataclass(frozen=True)
class Moments:
    """What least squares needs of the labels, computed once: X^T Y (d, k) and X^T 1 (d, 1)."""

    labels: Array
    ones: Array


class GramGradient:
    """n gradient = W w + (X^T 1) b - X^T Y (+ n l2 w); least squares and ridge only.

    The gradient is affine in theta, so after `along`, which computes W d, the gradient at every
    theta + a d is known: a line search needs one product for each iteration, as a fixed step does.

    With a tolerance, rows of W w are missing: *coordinates* whose entry of the gradient is not
    known. They are not moved. The step is **biased**: its mean is the gradient times the share p of
    iterations in which a coordinate is there, the same for all when workers straggle independently
    of what they hold, so its direction is right on average and it is shorter by 1 - p. It is not
    divided by p, because as it is every single step descends for step < 2 / L:
    f(theta - a g_S) <= f(theta) - a (1 - a L / 2) ||g_S||^2 (block coordinate descent). The loss is
    then taken with the rows that are missing as they were last known.

    Cost: one product for a gradient, O(d k) here, whatever the number of samples.
    """

    def __init__(self, product: Multiply, moments: Moments, objective: Objective) -> None:
        if not objective.model.quadratic:
            raise BadInput(
                f"the Gram matrix trains least-squares and ridge, not {objective.model.name}: use "
                "the matrix itself and its transpose"
            )
        self._product = product
        self._moments = moments
        self._objective = objective
        self._power = float(np.square(objective.targets).sum())
        self._total = objective.targets.sum(axis=0, keepdims=True)
        self._theta: Array | None = None  # where `_product_there` = W w is known
        self._product_there: Array = np.zeros_like(moments.labels)
        self._moves = 0

    @property
    def shape(self) -> tuple[int, int]:
        """(p, k) of theta."""
        return self._objective.shape(len(self._moments.labels))

    @property
    def samples(self) -> int:
        """n, by which W w is divided in the gradient."""
        return self._objective.samples

    def weights(self, theta: Array) -> Array:
        """The w (d, k) of theta that W is multiplied by."""
        return self._objective.split(theta)[0]

    def assembled(self, theta: Array, rows: Rows) -> Gradient:
        """The gradient at theta from all of W w, however that was come by."""
        value, loss = self._assemble(theta, rows.value)
        return Gradient(value, loss, spent=rows.spent)

    def gradient(self, theta: Array, tolerance: float = 0.0) -> Gradient:
        """The gradient at theta; see the class for what a tolerance leaves out."""
        rows = self._at(theta, tolerance)
        value, loss = self._assemble(theta, rows.value)
        if rows.known is not None:
            value[: len(rows.known)][~rows.known] = 0.0
        return Gradient(
            value=value,
            loss=loss,
            exact=rows.known is None,
            recovered=rows.share,
            spent=rows.spent,
        )

    def along(self, theta: Array, direction: Array) -> Line:
        """The objective along a direction; one product, or two where W w was partial."""
        rows = self._at(theta, 0.0)
        turn = self._objective.split(direction)[0]
        moved = self._product(turn, 0.0)
        value, start = self._assemble(theta, rows.value)
        with np.errstate(over="ignore", invalid="ignore"):
            further, _ = self._assemble(theta + direction, rows.value + moved.value)
            first = float((value * direction).sum())
            bend = float(((further - value) * direction).sum())

        def loss(a: float) -> float:
            return start + a * first + 0.5 * a * a * bend

        def slope(a: float) -> float:
            return first + a * bend

        def move(a: float) -> Array:
            self._theta, self._product_there = (
                theta + a * direction,
                rows.value + a * moved.value,
            )
            self._moves += 1
            return self._theta

        return Line(loss, slope, move, rows.spent + moved.spent)

    def _assemble(self, theta: Array, product: Array) -> tuple[Array, float]:
        """(gradient, loss) from W w (d, k)."""
        objective, moments, n = self._objective, self._moments, self._objective.samples
        w, b = objective.split(theta)
        with np.errstate(over="ignore", invalid="ignore"):
            slope = (product + moments.ones * b - moments.labels) / n + objective.l2 * w
            lift = (moments.ones.T @ w + n * b - self._total) / n
            square = (
                (w * product).sum()
                + 2 * (moments.ones.T @ w * b).sum()
                + n * (b * b).sum()
                - 2 * (w * moments.labels).sum()
                - 2 * (b * self._total).sum()
                + self._power
            )
            return objective.join(slope, lift), float(square) / (2 * n) + objective.penalty(theta)

    def _at(self, theta: Array, tolerance: float) -> Rows:
        """W w: what is tracked if it is of this point, else by a product."""
        if self._theta is not None and self._moves < REFRESH and np.array_equal(theta, self._theta):
            return Rows(self._product_there)
        weights = self._objective.split(theta)[0]
        if weights.any():
            rows = self._product(weights, tolerance)
        else:
            rows = Rows(np.zeros_like(weights))
        if rows.known is None:
            self._theta, self._product_there, self._moves = theta, rows.value, 0
            return rows
        stale = np.where(rows.known[:, None], rows.value, self._product_there)
        self._theta, self._product_there = None, stale
        return Rows(stale, rows.known, rows.spent)
