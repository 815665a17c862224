"""Arrivals of a polar code from kernels, decodable as soon as one of its decoders is ready."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from polarcodes.arrivals import Arrivals
from polarcodes.kernels.recursion import SettledTree
from polarcodes.syndrome_arrivals import SyndromeArrivals

Ids = NDArray[np.intp]


class KernelArrivals(Arrivals):
    """One walk down the stages for each arrival; ``positions[i]`` is the output of worker i.

    ``syndrome`` is the state of the second decoder, None for kernels that are not orthogonal.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        order: int,
        inputs: Ids,
        positions: Ids,
        answer_error: float,
        tolerance: float,
        syndrome: SyndromeArrivals | None,
    ) -> None:
        super().__init__(positions.size, answer_error, tolerance)
        self._tree = SettledTree(sizes, order)
        self._positions = positions.tolist()
        self._waiting = set(inputs.tolist())
        self._syndrome = syndrome

    @property
    def decodable(self) -> bool:
        """Whether one of the decoders determines every data block."""
        return self.method is not None

    @property
    def method(self) -> str | None:
        """The decoder that a plan would use now: sequential (cheaper), syndrome, or none yet."""
        if not self._waiting:
            return "sequential"
        return "syndrome" if self._syndrome is not None and self._syndrome.decodable else None

    def _settle(self, worker: int) -> None:
        self._waiting.discard(self._tree.settle(self._positions[worker]))
        if self._syndrome is not None:
            self._syndrome.add(worker)
