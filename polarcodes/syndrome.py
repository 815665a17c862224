"""The syndrome decoder of a code with an orthogonal transform: when it is ready, and its plan."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polarcodes.errors import NotDecodable
from polarcodes.parity import RANK_FLOOR, ParityCheck
from polarcodes.signed_transform import SignedTransform
from polarcodes.syndrome_arrivals import SyndromeArrivals
from polarcodes.syndrome_plan import SyndromePlan

Ids = NDArray[np.intp]

_SLACK = 1.01  # a plan may be this much worse than asked: the arrivals state rounds differently


class SyndromeDecoder:
    """Decodes any set of answers for which the frozen rows of the erased columns have full rank.

    Parameters
    ----------
    rounds : SignedTransform
        The transform G, of order N' >= N.
    slots : (s,) intp
        Rows of its input that carry data; zero elsewhere.
    positions : (N,) intp
        Row of its output that worker i answers; other rows are never known.
    """

    def __init__(self, rounds: SignedTransform, slots: Ids, positions: Ids) -> None:
        self.check = ParityCheck(rounds, slots)
        self._positions = positions

    def arrivals(self, answer_error: float, tolerance: float) -> SyndromeArrivals:
        """Return an empty arrivals state."""
        return SyndromeArrivals(self.check, self._positions, answer_error, tolerance)

    def predicted_error(self, workers: Ids, answer_error: float) -> float:
        """Return the rms relative error of the product; inf where S does not determine it."""
        return self.check.predicted_error(self._erased(workers), answer_error)

    def nullity(self, workers: Ids) -> int:
        """Return s - rank(Z_S)."""
        return self.check.nullity(self._erased(workers))

    def plan(self, workers: Ids, answer_error: float, tolerance: float) -> SyndromePlan:
        """Return the plan for S, or raise NotDecodable. O(e^2 f)."""
        if self.predicted_error(workers, answer_error) <= tolerance * _SLACK:
            return SyndromePlan.make(workers, self._positions[workers], self.check)
        missing = np.setdiff1d(np.arange(self._positions.size), workers)
        stay, helpful = self._split(missing)
        lacking = helpful.size
        while self._error(stay, answer_error) > tolerance and stay.size:
            weakest = self._weakest(stay)
            helpful, stay = np.append(helpful, stay[weakest]), np.delete(stay, weakest)
        raise NotDecodable(max(lacking, 1), np.sort(helpful).tolist())

    def _erased(self, workers: Ids) -> Ids:
        known = np.zeros(self.check.rounds.order, bool)
        known[self._positions[workers]] = True
        return np.flatnonzero(~known)

    def _never(self) -> Ids:
        return self._erased(np.arange(self._positions.size))

    def _error(self, missing: Ids, answer_error: float) -> float:
        rows = np.append(self._never(), self._positions[missing])
        return self.check.predicted_error(rows, answer_error)

    def _split(self, missing: Ids) -> tuple[Ids, Ids]:
        """Split the missing workers: a largest set that may stay missing, and the rest.

        The first set has independent columns, chosen greedily by what each adds to the others, so
        it is also well conditioned. Each answer of the rest raises the rank by one: none of them
        can be left out, and there is no smaller set. O(f^2 e).
        """
        never = self._never()
        columns = self.check.columns(np.append(never, self._positions[missing]))
        left = np.einsum("fe,fe->e", columns, columns)
        left[: never.size] += 2.0  # these first: nobody can send them
        basis = np.empty((min(columns.shape), columns.shape[0]))
        stay = np.zeros(left.size, bool)
        for step in range(len(basis)):
            best = int(np.argmax(left))
            vector = columns[:, best]
            for _ in range(2):  # twice is enough: the result is orthogonal to rounding
                vector = vector - basis[:step].T @ (basis[:step] @ vector)
            size = float(np.linalg.norm(vector))
            if size * size <= RANK_FLOOR:
                break
            basis[step] = vector / size
            left -= (basis[step] @ columns) ** 2
            left[best] = -1.0
            stay[best] = True
        stays = stay[never.size :]
        return missing[stays], missing[~stays]

    def _weakest(self, missing: Ids) -> int:
        """Return which of the missing workers costs most accuracy by being missing."""
        never = self._never()
        columns = self.check.columns(np.append(never, self._positions[missing]))
        inverse = np.linalg.inv(columns.T @ columns)
        saved = np.sum(inverse**2, axis=0) / np.diag(inverse)  # what the trace loses without it
        return int(np.argmax(saved[never.size :]))
