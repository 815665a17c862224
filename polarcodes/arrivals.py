"""The state of a run's arrivals, fed one worker at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from polarcodes.checks import real, worker_indices
from polarcodes.errors import InvalidCode, InvalidWorkers

ANSWER_ERROR = 3.4e-8
"""rms relative error of an answer that was rounded to float32."""

TOLERANCE = 1e-3
"""Largest predicted relative error of the product that counts as decodable."""


class Arrivals(ABC):
    """Which workers have answered, and whether their answers determine the product.

    Parameters
    ----------
    workers : int
        N.
    answer_error : float
        rms relative error of one answer; 3.4e-8 is what rounding to float32 costs.
    tolerance : float
        Largest predicted relative error of the decoded product that still counts as decodable.
        Codes that decode by additions alone (polar, uncoded) stay orders of magnitude below it and
        judge by the pattern of arrivals only.
    """

    def __init__(self, workers: int, answer_error: float, tolerance: float) -> None:
        for name, value in (("answer_error", answer_error), ("tolerance", tolerance)):
            if not real(name, value) > 0:
                raise InvalidCode(f"{name} must be a positive number, got {value!r}")
        self.answer_error = answer_error
        self.tolerance = tolerance
        self._workers = workers
        self._erased = bytearray(b"\x01") * workers
        self._count = 0

    def add(self, worker: int) -> bool:
        """Record one arrival; False when this worker was there already (answers may repeat)."""
        if not 0 <= worker < self._workers:
            raise InvalidWorkers(f"worker must be in 0..{self._workers - 1}, got {worker}")
        if not self._erased[worker]:
            return False
        self._erased[worker] = 0
        self._count += 1
        self._settle(int(worker))
        return True

    def update(self, workers: Iterable[int]) -> None:
        """Record several arrivals."""
        for worker in worker_indices(workers, self._workers):
            self.add(int(worker))

    def __len__(self) -> int:
        return self._count

    @property
    def arrived(self) -> tuple[int, ...]:
        """Workers that have answered, ascending."""
        return tuple(worker for worker, erased in enumerate(self._erased) if not erased)

    @property
    def missing(self) -> tuple[int, ...]:
        """Workers that have not answered, ascending."""
        return tuple(worker for worker, erased in enumerate(self._erased) if erased)

    @property
    @abstractmethod
    def decodable(self) -> bool:
        """Whether the answers so far determine every data block."""

    @abstractmethod
    def _settle(self, worker: int) -> None:
        """Account for one new arrival."""


class CountedArrivals(Arrivals):
    """Arrivals of a code that decodes from any ``needed`` answers."""

    def __init__(self, workers: int, needed: int, answer_error: float, tolerance: float) -> None:
        super().__init__(workers, answer_error, tolerance)
        self._needed = needed

    @property
    def decodable(self) -> bool:
        """Whether enough workers have answered."""
        return self._count >= self._needed

    def _settle(self, worker: int) -> None:
        """Nothing to do: the count says it all."""
