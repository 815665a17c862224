"""The gradient by two coded products: scores X w, then X^T r with the second encoding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polarlambda.training.gradients import Gradient, Line
from polarlambda.training.models import Array
from polarlambda.training.objective import Objective
from polarlambda.training.products import Rows

Multiply = Callable[[Array, float], Rows]

REFRESH = 50  # steps after which tracked scores are computed anew: rounding piles up by then


class SampleGradient:
    """gradient = X^T r + l2 w, r_i = loss'(x_i w + b, y_i) / n; for every model.

    Scores are linear in theta. After `along`, which computes X d for a direction d, the scores at
    theta + a d are those at theta plus a X d for every a: a line search costs no product beyond
    that one, and the next gradient needs only X^T r.

    With a tolerance, each product may come back without some rows, and those it has are exact.

    - Rows missing from X w are *samples*: they are left out and the mean is taken over the others,
      as in mini-batch descent. Who is missing depends on who straggled, not on theta or y. For a
      number of missing blocks that is given, and workers that straggle independently of what they
      hold, every block is missing equally often: the step is an **unbiased** estimate of the
      gradient. A worker that is slow in every iteration would break that: its samples would count
      less. Codes that never leave the same rows out (`searched`, `cpgc`, `rcsc`) are meant for it.
    - Rows missing from X^T r are *coordinates*: they are not moved. The step is then the gradient
      with some entries set to zero, as in block coordinate descent. It is **biased**: its mean is
      the gradient times the share p of iterations in which a coordinate is there (the same p for
      all under the same assumption), so its direction is right on average and its length short by
      1 - p. It is not divided by p, because as it is every single step descends for step < 2 / L:
      f(theta - a g_S) <= f(theta) - a (1 - a L / 2) ||g_S||^2.

    Cost: two products for a gradient; one, and one for `along`, in a line search. O(n k) here.
    """

    def __init__(
        self, features: int, product: Multiply, transposed: Multiply, objective: Objective
    ) -> None:
        self._product = product
        self._transposed = transposed
        self._objective = objective
        self._shape = objective.shape(features)
        self._theta: Array | None = None  # where the scores below are
        self._scores: Array | None = None
        self._moves = 0

    @property
    def shape(self) -> tuple[int, int]:
        """(p, k) of theta."""
        return self._shape

    def gradient(self, theta: Array, tolerance: float = 0.0) -> Gradient:
        """The gradient at theta; see the class for what a tolerance leaves out."""
        objective = self._objective
        rows = self._scores_at(theta, tolerance)
        residual = objective.residual(rows.value, rows.known)
        back = self._transposed(residual, tolerance)
        weights = objective.split(theta)[0]
        slope = back.value + objective.l2 * weights
        if back.known is not None:
            slope[~back.known] = 0.0
        return Gradient(
            value=objective.join(slope, residual.sum(axis=0, keepdims=True)),
            loss=objective.loss(rows.value, rows.known) + objective.penalty(theta),
            exact=rows.known is None and back.known is None,
            recovered=min(rows.share, back.share),
            spent=rows.spent + back.spent,
        )

    def along(self, theta: Array, direction: Array) -> Line:
        """The objective along a direction; one product, or two where the scores were partial."""
        objective = self._objective
        rows = self._scores_at(theta, 0.0)
        turn, lift = objective.split(direction)
        moved = self._product(turn, 0.0)
        scores, change = rows.value, moved.value + lift
        spent = rows.spent + moved.spent

        def loss(a: float) -> float:
            return objective.loss(scores + a * change) + objective.penalty(theta + a * direction)

        def slope(a: float) -> float:
            weights = objective.split(theta)[0]
            bend = objective.l2 * float((turn * (weights + a * turn)).sum())
            return float((objective.residual(scores + a * change) * change).sum()) + bend

        def move(a: float) -> Array:
            self._theta, self._scores = theta + a * direction, scores + a * change
            self._moves += 1
            return self._theta

        return Line(loss, slope, move, spent)

    def _scores_at(self, theta: Array, tolerance: float) -> Rows:
        """Scores at theta: those tracked so far if they are of this point, else by a product."""
        tracked = self._theta is not None and np.array_equal(theta, self._theta)
        if tracked and self._scores is not None and self._moves < REFRESH:
            return Rows(self._scores)
        weights, biases = self._objective.split(theta)
        if not weights.any():
            rows = Rows(np.zeros(self._objective.targets.shape))
        else:
            rows = self._product(weights, tolerance)
        scores = rows.value + biases
        if rows.known is None:
            self._theta, self._scores, self._moves = theta, scores, 0
        return Rows(scores, rows.known, rows.spent)
