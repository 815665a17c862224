"""Descent in coordinates in which the columns of X have mean zero, without encoding X again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from polarlambda.training.gradients import Gradient, Line, LineSource
from polarlambda.training.models import Array


class Centred:
    """The objective as a function of (w, c), c = b + mu w: scores x w + b are (x - mu) w + c.

    It is the same objective with the same minimum; but columns whose mean is large beside their
    spread no longer point into one direction, which takes a few times fewer iterations (scikit-
    learn's digits: 29 instead of 122). Gradients: g_w - mu g_b and g_b. For exact gradients: of one
    with coordinates missing, nothing could be said in the other coordinates.

    mu : (d, 1), means of X's columns. Cost: O(d k).
    """

    def __init__(self, source: LineSource, means: Array) -> None:
        self._source = source
        self._means = means
        self._known: tuple[Array, Array] | None = None  # a point in these and in its coordinates

    @property
    def shape(self) -> tuple[int, int]:
        """(p, k) of theta."""
        return self._source.shape

    def enter(self, theta: Array) -> Array:
        """(w, b) -> (w, c), for a point or a direction."""
        return np.concatenate([theta[:-1], theta[-1:] + self._means.T @ theta[:-1]])

    def leave(self, centred: Array) -> Array:
        """(w, c) -> (w, b)."""
        if self._known is not None and np.array_equal(centred, self._known[0]):
            return self._known[1]
        return np.concatenate([centred[:-1], centred[-1:] - self._means.T @ centred[:-1]])

    def gradient(self, theta: Array, tolerance: float = 0.0) -> Gradient:
        """The gradient at (w, c)."""
        found = self._source.gradient(self.leave(theta), tolerance)
        slope, lift = found.value[:-1], found.value[-1:]
        return replace(found, value=np.concatenate([slope - self._means * lift, lift]))

    def along(self, theta: Array, direction: Array) -> Line:
        """The objective along a direction of (w, c)."""
        line = self._source.along(self.leave(theta), self._turn(direction))

        def move(a: float) -> Array:
            self._known = theta + a * direction, line.move(a)
            return self._known[0]

        return replace(line, move=move)

    def _turn(self, direction: Array) -> Array:
        return np.concatenate([direction[:-1], direction[-1:] - self._means.T @ direction[:-1]])
