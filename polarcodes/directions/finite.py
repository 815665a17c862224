"""Coordinate directions: central finite differences, as a baseline."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.directions.base import Directions
from polarcodes.directions.solve import GradientEstimate
from polarcodes.directions.structured import plain_fields
from polarcodes.errors import InvalidCode

__all__ = ["FiniteDifferences"]


class FiniteDifferences(Directions):
    """v_i = sqrt(p) e_i, one for every parameter: each answer tells one component, and all are
    needed. The factor makes perturbations as large as those of the other families."""

    kind = "finite-differences"

    def __init__(self, parameters: int, count: int, seed: int = 0) -> None:
        super().__init__(parameters, count, seed)
        if count != parameters:
            raise InvalidCode(
                f"count must be the number of parameters, {parameters}, for finite differences, "
                f"got {count}"
            )

    def predicted_error(self, m: int) -> float:
        """sqrt((p - m) / m): the mean of m of p components, scaled up, without bias."""
        return math.sqrt((self.parameters - m) / m) if m else math.inf

    def to_manifest(self) -> dict[str, Any]:
        """Parameters, their number again, and a seed that nothing depends on."""
        return {
            "kind": self.kind,
            "parameters": self.parameters,
            "count": self.count,
            "seed": self.seed,
        }

    @classmethod
    def from_manifest(cls, manifest: dict[str, Any]) -> FiniteDifferences:
        """Rebuild them; raises `InvalidManifest`."""
        return cls(*plain_fields(manifest))

    def decodable(self, S: Any) -> bool:
        """Only all of them."""
        return len(set(S)) == self.count

    def _vectors(self, workers: NDArray[np.intp]) -> NDArray[np.float64]:
        rows = np.zeros((workers.size, self.parameters))
        rows[np.arange(workers.size), workers] = math.sqrt(self.parameters)
        return rows

    def _gradient(
        self, workers: NDArray[np.intp], slopes: NDArray[np.float64], estimator: str
    ) -> GradientEstimate:
        value = np.zeros(self.parameters)
        value[workers] = slopes / math.sqrt(self.parameters)
        exact = workers.size == self.parameters
        if estimator == "unbiased":
            value *= self.parameters / workers.size
            return GradientEstimate(value, exact, self.predicted_error(workers.size), "unbiased")
        error = math.sqrt(1 - workers.size / self.parameters)
        return GradientEstimate(value, exact, error, "components")
