"""The rank of the parity check while arrivals shrink the set of erased columns."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from polarcodes.arrivals import Arrivals
from polarcodes.parity import RANK_FLOOR, ParityCheck, decoding_error

Ids = NDArray[np.intp]
Float = NDArray[np.float64]

_NEGLIGIBLE = 1e-7  # an entry of a null vector that is zero but for rounding


class RankTracker:
    """Null space, then inverse Gram matrix, of P_E / sqrt(N) under removal of columns.

    Below full rank it keeps an orthonormal basis of the null space (e x k, k small): a removed
    column either takes one vector with it or only its own row. From full rank on it keeps
    M = (P_E^T P_E / N)^-1, whose trace is sum sigma_i^-2, and downdates it. O(e^2 f) at the start
    and once more when full rank is reached; O(e k) or O(e^2) for each removal.
    """

    def __init__(self, check: ParityCheck, rows: Ids) -> None:
        self._rows = rows.tolist()
        self._columns = check.columns(rows)
        self._null: Float | None = None
        self._inverse: Float = np.empty((0, 0))
        self._factorise()

    @property
    def gain(self) -> float:
        """The sum of sigma_i^-2; inf below full rank."""
        return math.inf if self._null is not None else float(np.trace(self._inverse))

    def remove(self, row: int) -> None:
        """Take one erased column out: its answer has arrived."""
        index = self._rows.index(row)
        del self._rows[index]
        self._columns = np.delete(self._columns, index, axis=1)
        if self._null is None:
            column = self._inverse[:, index] / math.sqrt(self._inverse[index, index])
            inverse = self._inverse - np.outer(column, column)
            self._inverse = np.delete(np.delete(inverse, index, axis=0), index, axis=1)
            return
        entries = self._null[index]
        if np.linalg.norm(entries) > _NEGLIGIBLE:
            # Rotate the basis until one vector alone has an entry in this row, and drop it.
            mirror = entries.copy()
            mirror[0] += math.copysign(float(np.linalg.norm(entries)), entries[0])
            mirror *= math.sqrt(2.0) / np.linalg.norm(mirror)
            self._null = (self._null - np.outer(self._null @ mirror, mirror))[:, 1:]
        self._null = np.delete(self._null, index, axis=0)
        if self._null.shape[1] == 0:
            self._factorise()

    def _factorise(self) -> None:
        squares, vectors = np.linalg.eigh(self._columns.T @ self._columns)
        weak = int(np.searchsorted(squares, RANK_FLOOR))
        self._null = vectors[:, :weak] if weak else None
        if not weak:
            self._inverse = (vectors / squares) @ vectors.T


class SyndromeArrivals(Arrivals):
    """Arrivals of a code with an orthogonal transform, judged by the syndrome decoder.

    Nothing is computed while more rows are erased than frozen; then :class:`RankTracker`, only when
    asked. ``positions[i]`` is the transform's row of worker i; rows of no worker are never known.
    """

    def __init__(
        self, check: ParityCheck, positions: Ids, answer_error: float, tolerance: float
    ) -> None:
        super().__init__(positions.size, answer_error, tolerance)
        self._check = check
        self._positions = positions
        self._waiting: list[int] = []
        self._tracker: RankTracker | None = None

    @property
    def decodable(self) -> bool:
        """Whether the product decoded from the answers so far meets the tolerance."""
        return self.predicted_error <= self.tolerance

    @property
    def predicted_error(self) -> float:
        """The rms relative error of the product decoded now; inf while it is not determined."""
        order = self._check.rounds.order
        erased = order - len(self)
        if erased > self._check.frozen.size:
            return math.inf
        if self._tracker is None:
            known = np.zeros(order, bool)
            known[self._positions[np.array(self.arrived, np.intp)]] = True
            self._tracker = RankTracker(self._check, np.flatnonzero(~known))
        else:
            for worker in self._waiting:
                self._tracker.remove(int(self._positions[worker]))
        self._waiting.clear()
        return decoding_error(order, erased, self._tracker.gain, self.answer_error)

    def _settle(self, worker: int) -> None:
        self._waiting.append(worker)
