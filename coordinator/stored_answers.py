"""Answers that stay in the store: known by where they lie, read column by column when needed."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.arrays import byte_view
from blockstore.bucket import Bucket
from blockstore.errors import CorruptObject, ObjectChanged, ObjectMissing
from coordinator.answers import AnswerSet
from coordinator.form import AnswerForm

__all__ = ["READERS", "AnswerLost", "StoredAnswer", "StoredAnswers", "read_columns"]

READERS = 16  # ranged GETs under way at once


class AnswerLost(RuntimeError):
    """A verified answer is no longer what it was: gone, replaced, cut short, or not finite."""

    def __init__(self, place: int, reason: str) -> None:
        super().__init__(reason)
        self.place = place


@dataclass(frozen=True)
class StoredAnswer:
    """The object that an answer lies in, the byte at which its entries begin, and the object's ETag
    when it was verified."""

    key: str
    offset: int
    etag: str


class StoredAnswers(AnswerSet[StoredAnswer]):
    """Answers of which only the place is kept: memory does not grow with their length."""

    def __init__(self, form: AnswerForm, bucket: Bucket) -> None:
        super().__init__(form)
        self._bucket = bucket

    def _keep(self, answer: StoredAnswer) -> StoredAnswer:
        return answer

    def where(self, places: Sequence[int]) -> list[StoredAnswer]:
        """Where the answers at these places lie."""
        return [self._held[place] for place in places]

    def gather(self, places: Sequence[int], first: int, last: int) -> NDArray[Any]:
        """See `AnswerSet.gather`: one ranged GET for each answer. Raises `AnswerLost`."""
        chunk = np.empty((len(places), last - first), self.form.dtype)
        with ThreadPoolExecutor(READERS, thread_name_prefix="read") as pool:
            read_columns(self._bucket, pool, self.where(places), places, first, chunk)
        return chunk


def read_columns(
    bucket: Bucket,
    pool: ThreadPoolExecutor,
    answers: Sequence[StoredAnswer],
    places: Sequence[int],
    first: int,
    out: NDArray[Any],
) -> None:
    """Fill `out` (m, columns) with the answers' columns from `first` on, one GET for each row.

    Raises `AnswerLost` for the first answer that is not there any more as it was verified, or that
    has NaN or infinity in these columns.
    """

    def read(row: int) -> None:
        answer, place, target = answers[row], places[row], out[row]
        start = answer.offset + first * out.itemsize
        try:
            bucket.read_into(byte_view(target), answer.key, start, if_match=answer.etag)
        except (ObjectMissing, ObjectChanged, CorruptObject) as exc:
            raise AnswerLost(place, str(exc)) from exc
        if not np.isfinite(target).all():
            where = f"s3://{bucket.name}/{answer.key}"
            raise AnswerLost(place, f"{where} has NaN or Inf, and its worker said it had none")

    for _ in pool.map(read, range(len(places))):
        pass
