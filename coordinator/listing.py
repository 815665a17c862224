"""What lies below runs/<run>/, listed in segments of one page each, side by side.

The keys of a page are those of some hundred workers, so that thousands of answers take one round
of requests and not one after the other. A segment whose answers are all here is not listed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Executor

from blockstore import keys
from blockstore.bucket import Bucket, ObjectInfo

__all__ = ["RunListing"]

SEGMENT = 900  # objects: a page of 1,000, less what else may lie there


class RunListing:
    """workers : of the run; objects : answers' objects that each of them writes."""

    def __init__(
        self, bucket: Bucket, run: str, workers: int, objects: int, pool: Executor
    ) -> None:
        self._bucket, self._pool = bucket, pool
        self._prefix = keys.run_prefix(run)
        self._per = max(1, SEGMENT // objects)  # workers of a segment
        starts = [
            f"{keys.results_prefix(run)}{w:05d}" for w in range(self._per, workers, self._per)
        ]
        self._starts: list[str | None] = [None, *starts]
        self._ends: list[str | None] = [*starts, None]
        self._wanted = [
            objects * min(self._per, workers - i * self._per) for i in range(len(self._starts))
        ]
        self._seen: list[set[str]] = [set() for _ in self._starts]

    def look(self) -> Iterable[ObjectInfo]:
        """The objects, in no particular order; those of complete segments may be left out.

        The first segment and the last are always listed: error records and stop markers lie there.
        """
        last = len(self._starts) - 1
        open_segments = [
            i for i, seen in enumerate(self._seen) if i in (0, last) or len(seen) < self._wanted[i]
        ]
        run: Callable[..., Iterable[list[ObjectInfo]]]
        run = map if len(open_segments) == 1 else self._pool.map
        for found in run(self._segment, open_segments):
            yield from found

    def seen(self, worker: int, key: str) -> None:
        """An answer's object need not be shown again."""
        self._seen[worker // self._per].add(key)

    def forget(self, worker: int, key: str) -> None:
        """An answer's object was deleted: another one will come."""
        self._seen[worker // self._per].discard(key)

    def _segment(self, number: int) -> list[ObjectInfo]:
        end = self._ends[number]
        found = []
        for info in self._bucket.list(self._prefix, start_after=self._starts[number]):
            if end is not None and info.key >= end:
                break
            found.append(info)
        return found
