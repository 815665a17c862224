"""Which rows of the product the answers determine exactly, before all of it is decodable.

A data block is recovered when its unit vector lies in the row space of the generator rows that
arrived (arXiv 1811.09271): a block that was sent as it is, or that follows from sums. Codes of
which any s answers decode recover nothing before and everything then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.pairs import Subject
from coordinator.answers import AnswerSet
from coordinator.check import Check
from coordinator.estimate import ProductEstimate
from polarcodes import ErasureCode
from polarcodes.schedules import Recovery, Schedule
from polarcodes.schedules.weights import RecoveryWeights

__all__ = ["RecoveredColumns", "RecoveredRows"]

ALL_OR_NOTHING = ("berrut", "hadamard", "mds")


class RecoveredRows:
    """The recovered rows of a run that ends with `tasks=X`. Answers only ever get more.

    `decodable` is the run's own judgement of all-or-nothing codes: an estimate is never passed off
    as recovered.

    Cost: the dense generator when first asked, then an elimination step for each new answer.
    """

    def __init__(
        self,
        code: ErasureCode,
        manifest: Subject,
        decodable: Callable[[Sequence[int]], bool],
    ) -> None:
        self._code = code
        self._decodable = decodable
        self._rows, self._block_rows = manifest.rows, manifest.block_rows
        self._recovery: Recovery | None = None
        self._told: set[int] = set()

    def share(self, places: Sequence[int]) -> float:
        """The share of the product's rows that the answers at these places determine."""
        missing = sum(last - first for first, last in self.missing(places))
        return 1.0 - missing / self._rows

    def missing(self, places: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """(first, last) of every range of rows that is not recovered, `last` not included."""
        ranges: list[tuple[int, int]] = []
        for block in np.flatnonzero(~self._mask(places)).tolist():
            first = min(block * self._block_rows, self._rows)
            last = min(first + self._block_rows, self._rows)
            if ranges and ranges[-1][1] == first:
                ranges[-1] = (ranges[-1][0], last)
            elif first < last:
                ranges.append((first, last))
        return tuple(ranges)

    def estimate(self, answers: AnswerSet[Any], places: Sequence[int]) -> ProductEstimate | None:
        """The recovered rows, and zeros for the others; None while nothing is recovered.

        The error is that of zeros in place of blocks of equal strength.
        """
        solution = self.solution(places)
        if solution is None:
            return None
        form = answers.form
        product = np.empty((form.data_blocks, form.length), form.dtype)
        for first, last in answers.chunks(solution.places):
            solution.solve(answers.gather(solution.places, first, last), product[:, first:last])
        return solution.result(form.layout.assemble(product))

    def solution(self, places: Sequence[int]) -> RecoveredColumns | None:
        """What recovers columns from the answers at these places; None while nothing is."""
        share = self.share(places)
        if share == 0.0 or self._recovery is None:
            return None
        return RecoveredColumns(self._recovery.weights(), share)

    def _mask(self, places: Sequence[int]) -> NDArray[Any]:
        blocks = self._code.data_blocks
        if self._code.name in ALL_OR_NOTHING:
            decodable = len(places) >= blocks and self._decodable(places)
            return np.full(blocks, decodable)
        if self._recovery is None:
            generator = self._code.generator()[None]
            self._recovery = Schedule(self._code.name, generator).recovery()
        for place in places:
            if place not in self._told:
                self._told.add(place)
                self._recovery.add(place)
        return self._recovery.recovered_mask


class RecoveredColumns:
    """Recovers columns of the data blocks; `places` are the answers that it takes."""

    def __init__(self, weights: RecoveryWeights, share: float) -> None:
        self.places = [place for place, _, _ in weights.messages]
        self._weights, self._share = weights, share
        self._size = 0.0

    def solve(self, Y: NDArray[Any], out: NDArray[Any]) -> Check:
        """Recover the columns Y (m, columns) into `out` (s, columns); may be rows of Y itself."""
        with np.errstate(over="ignore"):
            values = self._weights.apply(Y)
            out[...] = 0
            out[self._weights.tasks] = values
        self._size = math.hypot(self._size, float(np.linalg.norm(values.astype(np.float64))))
        return Check()

    def result(self, value: NDArray[Any] | None) -> ProductEstimate:
        """What all columns came to."""
        error = math.sqrt(1.0 - self._share)
        return ProductEstimate(value, error, math.ceil(error), self._size * error, "recovered")
