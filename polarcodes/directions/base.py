"""What every family of search directions offers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from polarcodes.checks import worker_indices
from polarcodes.directions.solve import GradientEstimate, least_squares, ridge
from polarcodes.errors import InvalidAnswers, InvalidCode

__all__ = ["ESTIMATORS", "Directions", "GradientEstimate"]

ESTIMATORS = ("auto", "decode", "least-squares", "ridge", "unbiased")
_FLOOR = 1e-10  # of singular values over the largest: a direction the answers do not determine


class Directions(ABC):
    """N directions v_0..v_{N-1} in p parameters. Immutable; all randomness comes from a seed.

    Directions are scaled to E[v v^T] = I, so ||v||^2 is p on average whatever the family: equal
    sigma means equally large perturbations.
    """

    kind: ClassVar[str]

    def __init__(self, parameters: int, count: int, seed: int) -> None:
        if parameters < 1:
            raise InvalidCode(f"parameters must be at least 1, got {parameters}")
        if count < 1:
            raise InvalidCode(f"count must be at least 1, got {count}")
        self.parameters = parameters
        self.count = count
        self.seed = seed

    def vectors(self, S: Iterable[int]) -> NDArray[np.float64]:
        """The directions of S, shape (m, p), in the order of S."""
        return self._vectors(worker_indices(S, self.count))

    def gradient(self, S: Iterable[int], y: Any, *, estimator: str = "auto") -> GradientEstimate:
        """The gradient from the derivatives y, shape (m,), along the directions of S.

        estimator : "unbiased" is (1/m) sum y_i v_i, plain evolution strategies' estimator;
             "ridge" least squares that judge by the values themselves how noisy they are, and trust
            combinations of them accordingly (`polarcodes.directions.solve.ridge`);
            "least-squares" trusts them fully: it multiplies noise where hardly more values than
            parameters have come; before they determine everything the gradient's projection on
            the directions that arrived, biased towards zero and never a direction of ascent;
            "decode" the code's fast decoder where the values determine everything (it neither
            averages noise nor bounds it), else "unbiased"; "auto" is "ridge".

        Raises `InvalidWorkers`, and `InvalidAnswers` for NaN, infinity or a wrong number of
        derivatives. Cost: m p^2 for least squares, m p for the unbiased one.
        """
        workers = worker_indices(S, self.count)
        slopes = np.asarray(y, dtype=np.float64)
        if slopes.shape != workers.shape:
            raise InvalidAnswers(f"y must have shape ({workers.size},), got {slopes.shape}")
        if not np.isfinite(slopes).all():
            raise InvalidAnswers(
                f"y must be finite, got {slopes[~np.isfinite(slopes)][0]}: leave out evaluations "
                "that failed, they are erasures"
            )
        if estimator not in ESTIMATORS:
            raise InvalidCode(
                f"estimator must be one of {', '.join(ESTIMATORS)}, got {estimator!r}"
            )
        if workers.size == 0:
            return GradientEstimate(np.zeros(self.parameters), False, math.inf, "none")
        return self._gradient(workers, slopes, estimator)

    def _gradient(
        self, workers: NDArray[np.intp], slopes: NDArray[np.float64], estimator: str
    ) -> GradientEstimate:
        if estimator in ("auto", "ridge"):
            return ridge(self._vectors(workers), slopes)
        if estimator == "least-squares":
            return least_squares(self._vectors(workers), slopes)
        value = self._vectors(workers).T @ slopes / workers.size
        error = self.predicted_error(workers.size)
        return GradientEstimate(value, error == 0.0, error, "unbiased")

    def decodable(self, S: Iterable[int]) -> bool:
        """Whether derivatives along the directions of S determine the gradient."""
        workers = worker_indices(S, self.count)
        if workers.size < self.parameters:
            return False
        values = np.linalg.svd(self._vectors(workers), compute_uv=False)
        return bool(values[self.parameters - 1] > _FLOOR * values[0])

    @abstractmethod
    def predicted_error(self, m: int) -> float:
        """Relative rms error of the unbiased estimator from m derivatives; inf at m = 0."""

    @abstractmethod
    def to_manifest(self) -> dict[str, Any]:
        """The directions as pure JSON; what a worker rebuilds its own from."""

    @abstractmethod
    def _vectors(self, workers: NDArray[np.intp]) -> NDArray[np.float64]:
        """The directions of checked `workers`."""
