"""The verified answers of a run: held once, as they came, or left in the store."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from blockstore.answers import AnswerMetadata
from coordinator.form import AnswerForm

__all__ = ["AnswerSet", "Answers", "DecisiveAnswerLost", "column_chunks"]

CHUNK_BYTES = 16 << 20  # of float64 answers that are worked on at a time

Held = TypeVar("Held")


class AnswerSet(ABC, Generic[Held]):
    """Answers y_i by place in the code, each L = `form.length` entries. The place is the worker's
    number where each worker has one block.

    `Held` is what is kept of an answer: the array, or where it lies.
    """

    def __init__(self, form: AnswerForm) -> None:
        self.form = form
        self.metadata: dict[int, AnswerMetadata] = {}
        self._held: dict[int, Held] = {}

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, place: int) -> bool:
        return place in self._held

    def add(self, place: int, answer: Held, metadata: AnswerMetadata) -> None:
        """Keep a verified answer; the first one for a place stays."""
        if place not in self._held:
            self._held[place] = self._keep(answer)
            self.metadata[place] = metadata

    @abstractmethod
    def _keep(self, answer: Held) -> Held:
        """What is to be held of a new answer."""

    @abstractmethod
    def gather(self, places: Sequence[int], first: int, last: int) -> NDArray[Any]:
        """Columns `first` to `last` (excluded) of the answers at `places`, as (m, columns)."""

    def chunks(self, places: Sequence[int]) -> list[tuple[int, int]]:
        """Column ranges whose gathered float64 answers have `CHUNK_BYTES` at most."""
        return column_chunks(len(places), self.form.length)

    def scale(self, places: Sequence[int]) -> float:
        """rms of the workers' ||row|| ||x||, the size of what was added up in their products."""
        scales = [self.metadata[place].scale for place in places]
        return math.hypot(*scales) / math.sqrt(len(scales)) if scales else 0.0


class DecisiveAnswerLost(RuntimeError):
    """An answer of the stored decisive set is no longer there: the result cannot be rebuilt."""


class Answers(AnswerSet[NDArray[Any]]):
    """Answers in memory: views of the bodies that came from the store. Nothing is copied until a
    chunk of columns is gathered for the estimate or the decoder."""

    def _keep(self, answer: NDArray[Any]) -> NDArray[Any]:
        return answer.reshape(-1)

    def gather(self, places: Sequence[int], first: int, last: int) -> NDArray[Any]:
        """See `AnswerSet.gather`; a copy."""
        chunk = np.empty((len(places), last - first), self.form.dtype)
        for row, place in enumerate(places):
            chunk[row] = self._held[place][first:last]
        return chunk


def column_chunks(rows: int, columns: int) -> list[tuple[int, int]]:
    """Ranges of columns, of which `rows` float64 rows have `CHUNK_BYTES` at most."""
    step = max(1, CHUNK_BYTES // (8 * max(1, rows)))
    return [(a, min(a + step, columns)) for a in range(0, columns, step)]
