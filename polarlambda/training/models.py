"""The models: loss of a sample, and its derivative in the scores, from the scores x_i theta + b.

Every model is convex in its scores, so every local minimum is a global one. `curvature` bounds the
second derivative of a sample's loss in its scores: L = curvature lambda_max(X^T X) / n (+ l2)
bounds that of the objective, and fixed steps below 2 / L descend.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from polarlambda.errors import BadInput

Array = NDArray[np.float64]

MODELS = ("least-squares", "ridge", "logistic", "multinomial")


class Model(Protocol):
    """scores, targets : (m, k) float64, for any m of the samples."""

    name: str
    quadratic: bool
    curvature: float

    def losses(self, scores: Array, targets: Array) -> Array:
        """Loss of each sample, (m,)."""
        ...

    def residual(self, scores: Array, targets: Array) -> Array:
        """Derivative of each sample's loss in its scores, (m, k)."""
        ...


class LeastSquares:
    """Loss ||s - y||^2 / 2; residual s - y. With l2 it is ridge regression."""

    quadratic = True
    curvature = 1.0

    def __init__(self, name: str = "least-squares") -> None:
        self.name = name

    def losses(self, scores: Array, targets: Array) -> Array:
        """||s - y||^2 / 2."""
        with np.errstate(over="ignore", invalid="ignore"):  # a step that diverges is noticed by it
            return np.asarray(0.5 * np.square(scores - targets).sum(axis=1))

    def residual(self, scores: Array, targets: Array) -> Array:
        """s - y."""
        return scores - targets


class Logistic:
    """Two classes, targets 0 and 1: loss log(1 + e^s) - y s; residual sigmoid(s) - y."""

    name = "logistic"
    quadratic = False
    curvature = 0.25

    def losses(self, scores: Array, targets: Array) -> Array:
        """log(1 + e^s) - y s, without overflow."""
        return np.asarray((np.logaddexp(0.0, scores) - targets * scores).sum(axis=1))

    def residual(self, scores: Array, targets: Array) -> Array:
        """sigmoid(s) - y, without overflow."""
        return np.asarray(0.5 * (1.0 + np.tanh(0.5 * scores)) - targets)


class Multinomial:
    """K classes, targets one-hot: loss log(sum_c e^{s_c}) - s_y; residual softmax(s) - y."""

    name = "multinomial"
    quadratic = False
    curvature = 0.5

    def losses(self, scores: Array, targets: Array) -> Array:
        """log(sum_c e^{s_c}) - s_y, without overflow."""
        top = scores.max(axis=1, keepdims=True)
        total = np.log(np.exp(scores - top).sum(axis=1)) + top[:, 0]
        return np.asarray(total - (scores * targets).sum(axis=1))

    def residual(self, scores: Array, targets: Array) -> Array:
        """softmax(s) - y, without overflow."""
        grown = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(grown / grown.sum(axis=1, keepdims=True) - targets)


def make_model(name: str) -> Model:
    """The model of that name; raises `BadInput`."""
    makers: dict[str, Any] = {
        "least-squares": LeastSquares,
        "ridge": lambda: LeastSquares("ridge"),
        "logistic": Logistic,
        "multinomial": Multinomial,
    }
    if name not in makers:
        raise BadInput(f"model must be one of {', '.join(MODELS)}, got {name!r}")
    model: Model = makers[name]()
    return model
