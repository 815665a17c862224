"""Independent H D blocks: orthogonal directions without redundancy (arXiv 1804.02395)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.directions.base import Directions
from polarcodes.errors import InvalidManifest
from polarcodes.randomness import random_signs, random_subset

__all__ = ["StructuredDirections"]


class StructuredDirections(Directions):
    """Rows of blocks H D_1, H D_2, ... of order n, the least power of two that is at least p.

    Parameters sit at p random columns of every block. N need not be a multiple of n: the last
    block is cut short. Before all of a block has come the estimator is that of evolution
    strategies with orthogonal directions.
    """

    kind = "structured"

    def __init__(self, parameters: int, count: int, seed: int) -> None:
        super().__init__(parameters, count, seed)
        self.order = 1 << (parameters - 1).bit_length()
        blocks = -(-count // self.order)
        self._signs = [random_signs(self.order, seed, stream=2 * k) for k in range(blocks)]
        self._columns = [
            random_subset(self.order, parameters, seed, stream=2 * k + 1) for k in range(blocks)
        ]

    def predicted_error(self, m: int) -> float:
        """sqrt((p - 1) (1 - (m - 1) q / (n - 1)) / m), q the share of pairs within one block.

        Exact for a uniform set of m of the N: two rows of one block make up for each other, rows of
        different blocks are independent.
        """
        if m == 0:
            return math.inf
        if self.parameters == 1:
            return 0.0
        whole, rest = divmod(self.count, self.order)
        pairs = whole * self.order * (self.order - 1) + rest * (rest - 1)
        together = pairs / max(1, self.count * (self.count - 1))
        share = 1 - (m - 1) * together / (self.order - 1)
        return math.sqrt(max(0.0, (self.parameters - 1) * share / m))

    def to_manifest(self) -> dict[str, Any]:
        """Parameters, number and seed: the words of the seed's generator never change."""
        return {
            "kind": self.kind,
            "parameters": self.parameters,
            "count": self.count,
            "seed": self.seed,
        }

    @classmethod
    def from_manifest(cls, manifest: dict[str, Any]) -> StructuredDirections:
        """Rebuild them; raises `InvalidManifest`."""
        return cls(*plain_fields(manifest))

    def _vectors(self, workers: NDArray[np.intp]) -> NDArray[np.float64]:
        rows = np.empty((workers.size, self.parameters))
        for row, worker in zip(rows, workers, strict=True):
            block, line = divmod(int(worker), self.order)
            columns = self._columns[block]
            # H[i, j] is minus one to the number of ones that i and j share.
            shared = np.bitwise_count(columns & line)
            row[:] = np.where(shared & 1, -1.0, 1.0) * self._signs[block][columns]
        return rows


def plain_fields(manifest: dict[str, Any]) -> tuple[int, int, int]:
    """(parameters, count, seed) of a manifest; raises `InvalidManifest`."""
    values = []
    for name, low in (("parameters", 1), ("count", 1), ("seed", 0)):
        value = manifest.get(name)
        if type(value) is not int or value < low:
            raise InvalidManifest(f"{name} must be an int of at least {low}, got {value!r}")
        values.append(value)
    return values[0], values[1], values[2]
