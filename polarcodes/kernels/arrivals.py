"""Arrivals of a polar code from kernels, judged by the pattern of its sequential decoder."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from polarcodes.arrivals import Arrivals
from polarcodes.kernels.recursion import SettledTree

Ids = NDArray[np.intp]


class KernelArrivals(Arrivals):
    """One walk down the stages for each arrival; ``positions[i]`` is the output of worker i."""

    def __init__(
        self,
        sizes: Sequence[int],
        order: int,
        inputs: Ids,
        positions: Ids,
        answer_error: float,
        tolerance: float,
    ) -> None:
        super().__init__(positions.size, answer_error, tolerance)
        self._tree = SettledTree(sizes, order)
        self._positions = positions.tolist()
        self._waiting = set(inputs.tolist())

    @property
    def decodable(self) -> bool:
        """Whether the sequential decoder reaches every data block."""
        return not self._waiting

    @property
    def method(self) -> str | None:
        """The decoder that a plan would use now: sequential, or none yet."""
        return None if self._waiting else "sequential"

    def _settle(self, worker: int) -> None:
        self._waiting.discard(self._tree.settle(self._positions[worker]))
