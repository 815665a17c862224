"""Independent normal directions: plain evolution strategies, as a baseline."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.directions.base import Directions
from polarcodes.directions.structured import plain_fields
from polarcodes.randomness import words

__all__ = ["GaussianDirections"]


class GaussianDirections(Directions):
    """Rows with independent standard normal entries, by Box and Muller from the seed's words.

    Direction i depends on the seed and i alone: a worker makes its own.
    """

    kind = "gaussian"

    def predicted_error(self, m: int) -> float:
        """sqrt((p + 1) / m): the mean of y v v^T g has that relative rms error."""
        return math.sqrt((self.parameters + 1) / m) if m else math.inf

    def to_manifest(self) -> dict[str, Any]:
        """Parameters, number and seed: the words of the seed's generator never change."""
        return {
            "kind": self.kind,
            "parameters": self.parameters,
            "count": self.count,
            "seed": self.seed,
        }

    @classmethod
    def from_manifest(cls, manifest: dict[str, Any]) -> GaussianDirections:
        """Rebuild them; raises `InvalidManifest`."""
        return cls(*plain_fields(manifest))

    def _vectors(self, workers: NDArray[np.intp]) -> NDArray[np.float64]:
        rows = np.empty((workers.size, self.parameters))
        for row, worker in zip(rows, workers, strict=True):
            row[:] = _normals(self.parameters, self.seed, int(worker))
        return rows


def _normals(count: int, seed: int, stream: int) -> NDArray[np.float64]:
    half = -(-count // 2)
    units = (words(2 * half, seed, stream) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    radius = np.sqrt(-2.0 * np.log1p(-units[:half]))
    angle = 2.0 * np.pi * units[half:]
    return np.concatenate([radius * np.cos(angle), radius * np.sin(angle)])[:count]
