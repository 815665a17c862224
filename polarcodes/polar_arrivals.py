"""Arrivals of a polar code, which is decodable as soon as one of its two decoders is ready."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polarcodes.arrivals import Arrivals
from polarcodes.erasures import ErasureTree
from polarcodes.syndrome_arrivals import SyndromeArrivals


class PolarArrivals(Arrivals):
    """O(log N) per arrival for the sequential decoder; the syndrome's rank while that waits."""

    def __init__(self, slots: NDArray[np.intp], syndrome: SyndromeArrivals) -> None:
        super().__init__(len(syndrome.missing), syndrome.answer_error, syndrome.tolerance)
        self._tree = ErasureTree(self._workers)
        self._waiting = set(slots.tolist())
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
        return "syndrome" if self._syndrome.decodable else None

    def _settle(self, worker: int) -> None:
        self._waiting.discard(self._tree.settle(worker))
        self._syndrome.add(worker)
