"""Codes that know whether a given set decodes, and find everything else from that."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.arrivals import ANSWER_ERROR, TOLERANCE, Arrivals
from polarcodes.checks import integer, worker_indices
from polarcodes.code import ErasureCode
from polarcodes.completing import completing_workers
from polarcodes.errors import NotDecodable
from polarcodes.estimate import Estimate
from polarcodes.least_squares import minimum_norm, projection_error
from polarcodes.operator import GeneratorRows

Ids = NDArray[np.intp]


class AskingArrivals(Arrivals):
    """Arrivals that ask the code about the whole set, from the s-th one on, when asked."""

    def __init__(self, code: SearchedCode, answer_error: float, tolerance: float) -> None:
        super().__init__(code.workers, answer_error, tolerance)
        self._code = code
        self._answer: bool | None = False

    @property
    def decodable(self) -> bool:
        """Whether the code decodes the set of arrivals; kept until the next one."""
        if self._answer is None:
            self._answer = self._code.decodable(
                self.arrived, answer_error=self.answer_error, tolerance=self.tolerance
            )
        return self._answer

    def _settle(self, worker: int) -> None:
        if self._answer is not True and len(self) >= self._code.data_blocks:
            self._answer = None  # a decodable set stays one


class SearchedCode(ErasureCode):
    """Base of the comparison codes. The estimate is minimum-norm least squares on Z_S."""

    def arrivals(
        self, *, answer_error: float = ANSWER_ERROR, tolerance: float = TOLERANCE
    ) -> Arrivals:
        """Return an empty arrivals state; one :meth:`decodable` per arrival from the s-th on."""
        return AskingArrivals(self, answer_error, tolerance)

    def decodable(
        self,
        S: Iterable[int],
        *,
        answer_error: float = ANSWER_ERROR,
        tolerance: float = TOLERANCE,
    ) -> bool:
        """Return whether the answers of S determine every data block, to the tolerance."""
        workers = worker_indices(S, self.workers)
        return workers.size >= self.data_blocks and self._decodes(workers, answer_error, tolerance)

    def predicted_error(self, m: int) -> float:
        """Return sqrt(1 - m/s) for blocks of equal strength, sqrt(1/s) from m = s - 1 to N - 1."""
        return projection_error(self.data_blocks, integer("m", m, 0, self.workers), self.workers)

    def _refusal(self, workers: Ids, answer_error: float, tolerance: float) -> NotDecodable:
        """Return what S lacks: s - m answers at least, and a set that completes it."""
        erased = np.ones(self.workers, bool)
        erased[workers] = False

        def complete(flags: NDArray[np.bool_]) -> bool:
            return self.decodable(
                np.flatnonzero(~flags), answer_error=answer_error, tolerance=tolerance
            )

        lacking = max(1, self.data_blocks - workers.size)
        return NotDecodable(lacking, completing_workers(erased, complete))

    def _estimate(self, workers: Ids, answers: NDArray[Any]) -> Estimate:
        """Project; with all N answers decode. Never worse than zero, whatever the product."""
        arrived, relative = workers.size, self.predicted_error(workers.size)
        if arrived == self.workers:
            return Estimate(self.plan(workers).apply(answers), 0.0, 0.0, 0.0, "decoded")
        operator = GeneratorRows(self, workers)
        value = minimum_norm(operator, answers)
        if arrived == 0:
            return Estimate(value, math.inf, math.inf, math.inf, "least-squares")
        # E ||y_i||^2 = ||z_i||^2 ||X||^2 / s for blocks of equal strength.
        energy = float(np.sum(answers.astype(np.float64) ** 2))
        energy *= self.data_blocks / self._row_energy(workers)
        upper = max(relative, self._upper(arrived))
        return Estimate(value, relative, upper, relative * math.sqrt(energy), "least-squares")

    def _upper(self, arrived: int) -> float:
        """Return a 95 % bound of the relative error; a projection cannot exceed one."""
        return 1.0

    @abstractmethod
    def _decodes(self, workers: Ids, answer_error: float, tolerance: float) -> bool:
        """Return whether at least s workers determine the product."""

    @abstractmethod
    def _row_energy(self, workers: Ids) -> float:
        """Return the sum of squares of the generator rows of ``workers``."""
