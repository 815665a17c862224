"""What is minimised: the mean loss of a model, and a penalty of the weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polarlambda.training.models import Array, Model


@dataclass(frozen=True)
class Objective:
    """f(theta) = (1 / n) sum_i loss(x_i w + b, y_i) + (l2 / 2) ||w||^2.

    theta : (p, k), the weights w (d, k) and, with `intercept`, the biases b (1, k) as its last row,
    which are not penalised; targets : (n, k). scikit-learn's Ridge(alpha) is l2 = alpha / n, its
    LogisticRegression(C) is l2 = 1 / (n C).
    """

    model: Model
    targets: Array
    l2: float = 0.0
    intercept: bool = True

    @property
    def samples(self) -> int:
        """n."""
        return len(self.targets)

    @property
    def outputs(self) -> int:
        """k."""
        return int(self.targets.shape[1])

    def shape(self, features: int) -> tuple[int, int]:
        """(p, k) of theta for d features."""
        return features + self.intercept, self.outputs

    def split(self, theta: Array) -> tuple[Array, Array]:
        """(w, b) of theta; b is (1, k), zeros without an intercept."""
        if not self.intercept:
            return theta, np.zeros((1, self.outputs))
        return theta[:-1], theta[-1:]

    def join(self, weights: Array, biases: Array) -> Array:
        """theta of (w, b)."""
        return np.concatenate([weights, biases]) if self.intercept else weights

    def penalty(self, theta: Array) -> float:
        """(l2 / 2) ||w||^2."""
        if not self.l2:
            return 0.0
        with np.errstate(over="ignore"):
            return 0.5 * self.l2 * float(np.square(self.split(theta)[0]).sum())

    def loss(self, scores: Array, known: NDArray[np.bool_] | None = None) -> float:
        """Mean loss of the samples whose scores are known (all of them: None), no penalty."""
        if known is not None:
            return float(self.model.losses(scores[known], self.targets[known]).mean())
        return float(self.model.losses(scores, self.targets).mean())

    def residual(self, scores: Array, known: NDArray[np.bool_] | None = None) -> Array:
        """(n, k): derivative of `loss` in the scores; zero for samples that are not known."""
        if known is None:
            return self.model.residual(scores, self.targets) / self.samples
        residual = np.zeros_like(scores)
        residual[known] = self.model.residual(scores[known], self.targets[known])
        return residual / max(1, int(known.sum()))
