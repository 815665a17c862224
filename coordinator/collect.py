"""What is new in a run's part of the store: answers, error records, stop markers.

One LIST of everything below runs/<run>/ serves all three; the new objects are fetched and verified
in parallel. Only an answer that passes every check counts: length, shape, dtype, finite, digest of
x, encoding id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore import keys
from blockstore.answers import AnswerMetadata
from blockstore.arrays import decode_array, parse_header
from blockstore.errors import (
    ArrayRefused,
    CorruptObject,
    ObjectMissing,
    RunRecordError,
    StoreUnavailable,
)
from blockstore.records import ErrorRecord
from blockstore.runs import RunStore
from blockstore.uploads import Peek
from coordinator.form import AnswerForm
from coordinator.listing import RunListing
from coordinator.ports import Clock
from coordinator.stored_answers import StoredAnswer

__all__ = ["Answer", "Collector", "Listing", "fetch_threads"]

THREADS, MOST_THREADS = 16, 64
HEAD_BYTES = 256  # of an answer: its header and little more
UNAVAILABLE = 3  # listings in a row in which an answer may be unreadable before it counts as lost


class UnusableAnswer(Exception):
    """An answer that no other attempt would make better; `kind` is the error's type."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Answer:
    """A verified answer of a worker: that to its task `task`, at `place` in the code; or where it
    lies, if answers stay in the store."""

    worker: int
    task: int
    place: int
    value: NDArray[Any] | StoredAnswer
    metadata: AnswerMetadata


@dataclass(frozen=True)
class Listing:
    """What one look at the store found that earlier ones had not.

    answers are verified; failures are error records of workers, and answers that cannot be used
    (with `rejected` naming the workers whose object has to go before another attempt); stops are
    the attempts whose stop marker is there. seconds: time that the LIST took, without the GETs.
    """

    answers: tuple[Answer, ...]
    failures: tuple[ErrorRecord, ...]
    rejected: frozenset[int]
    stops: frozenset[int]
    seconds: float


def fetch_threads(workers: int) -> int:
    """GETs under way at once: each waits 0.1 s for its first byte, so thousands of answers need
    more of them; 16 up to N = 512, 64 from N = 2,048 on."""
    return min(MOST_THREADS, max(THREADS, workers // 32))


class Collector:
    """Looks into the store again and again; each object is taken in once.

    Parameters
    ----------
    store : the run's objects
    form : what an answer has to look like
    x_digest, encoding : what it has to be an answer to
    clock : measures the listings
    threads : GETs under way at once
    stored : read the beginning of every answer only, and leave it where it is. That all of it is
        finite is then taken from what its worker says, or looked at once where it says nothing
    """

    def __init__(
        self,
        store: RunStore,
        form: AnswerForm,
        *,
        x_digest: str,
        encoding: str,
        workers: int,
        clock: Clock,
        threads: int = THREADS,
        stored: bool = False,
    ) -> None:
        self._store = store
        self._clock = clock
        self._shares = form.shares
        self._shape, self._dtype = form.block_shape, form.dtype
        self._x_digest, self._encoding, self._workers = x_digest, encoding, workers
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="collect")
        self._stored = stored
        objects = self._shares.per_worker // self._shares.per_object
        self._listing = RunListing(store.bucket, store.run, workers, objects, self._pool)
        self._seen: set[str] = set()
        self._unreadable: dict[str, int] = {}
        self._rejected: dict[int, set[str]] = {}

    def look(self, only: Iterable[int] | None = None) -> Listing:
        """List, fetch what is new, verify. With `only`, fetch no answers but those at these places
        of the code.

        Raises `AccessDenied`, `BucketMissing`, `CredentialsMissing`, `StoreUnavailable`: those are
        the coordinator's own troubles, not a worker's.
        """
        wanted = None if only is None else frozenset(only)
        results: list[tuple[str, int, int, int]] = []
        errors: list[tuple[str, tuple[int, int]]] = []
        stops: set[int] = set()
        run, began = self._store.run, self._clock.now()
        for info in self._listing.look():
            key = info.key
            try:
                if key.startswith(keys.stop_prefix(run)):
                    stops.add(int(key.removeprefix(keys.stop_prefix(run))))
                elif key.startswith(keys.results_prefix(run)) and key not in self._seen:
                    results += self._wanted(key, wanted)
                elif key.startswith(keys.errors_prefix(run)) and key not in self._seen:
                    errors.append((key, keys.parse_error_key(key)))
            except ValueError:  # somebody else's object: no key that we write
                continue
        seconds = self._clock.now() - began
        answers: list[Answer] = []
        failures: list[ErrorRecord] = []
        rejected: set[int] = set()
        for (key, worker, *_), found in zip(results, self._map(self._fetch, results), strict=True):
            if isinstance(found, ErrorRecord):
                failures.append(found)
                rejected.add(worker)
                self._rejected.setdefault(worker, set()).add(key)
            elif found is not None:
                answers.extend(found)
            if found is not None:
                self._seen.add(key)
                self._listing.seen(worker, key)
        for (key, (worker, _)), record in zip(errors, self._map(self._error, errors), strict=True):
            if record is not None and worker < self._workers:
                failures.append(record)
            self._seen.add(key)
        found_stops = frozenset(stops)
        return Listing(tuple(answers), tuple(failures), frozenset(rejected), found_stops, seconds)

    def discard(self, workers: Iterable[int]) -> None:
        """Delete unusable answers, which would keep another attempt's from being written."""
        broken = {key: w for w in workers for key in self._rejected.pop(w, ())}
        self._store.bucket.delete(sorted(broken))
        self._seen -= broken.keys()
        for key, worker in broken.items():
            self._listing.forget(worker, key)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _map(self, function: Callable[[Any], Any], items: list[Any]) -> Iterable[Any]:
        return map(function, items) if len(items) < 2 else self._pool.map(function, items)

    def _wanted(self, key: str, places: frozenset[int] | None) -> list[tuple[str, int, int, int]]:
        """(key, worker, first task, last task) if the key is that of answers that are wanted.

        Raises ValueError for other keys.
        """
        shares = self._shares
        if shares.per_worker == 1:
            worker, first, last = keys.parse_result_key(key), 0, 0
        else:
            worker, first, last = keys.parse_part_key(key)
        if worker >= self._workers or not shares.is_object(first, last):
            return []
        if places is not None and places.isdisjoint(shares.places_between(worker, first, last)):
            return []
        return [(key, worker, first, last)]

    def _fetch(self, wanted: tuple[str, int, int, int]) -> list[Answer] | ErrorRecord | None:
        """Verified answers, the reason why they are none, or None to look again next time."""
        key, worker, first, last = wanted
        count = last - first + 1
        attempt = 0
        try:
            if self._stored:
                peeked = self._store.bucket.peek(key, HEAD_BYTES)
                metadata = AnswerMetadata.from_metadata(peeked.metadata)
                attempt = metadata.attempt
                parts: Sequence[Any] = self._where(peeked, key, metadata, count)
            else:
                body, found = self._store.bucket.get_object(key)
                metadata = AnswerMetadata.from_metadata(found)
                attempt = metadata.attempt
                parts = self._parts(decode_array(body), metadata, count)
        except ObjectMissing:
            return None
        except StoreUnavailable as exc:
            self._unreadable[key] = self._unreadable.get(key, 0) + 1
            if self._unreadable[key] < UNAVAILABLE:
                return None
            return _unusable(worker, attempt, "StoreUnavailable", str(exc), fatal=False)
        except (CorruptObject, ArrayRefused) as exc:
            return _unusable(worker, attempt, "CorruptObject", str(exc), fatal=False)
        except UnusableAnswer as exc:
            return _unusable(worker, attempt, exc.kind, str(exc), fatal=True)
        share = metadata.share(count)
        places = self._shares.places_between(worker, first, last)
        return [
            Answer(worker, first + i, place, part, share)
            for i, (place, part) in enumerate(zip(places, parts, strict=True))
        ]

    def _parts(
        self, value: NDArray[Any], metadata: AnswerMetadata, count: int
    ) -> Sequence[NDArray[Any]]:
        """The answers that share an object; raises `UnusableAnswer`."""
        self._check(value.shape, value.dtype, metadata, count)
        if not np.isfinite(value).all():
            raise UnusableAnswer(
                "NotFinite", "the answer has NaN or Inf: scale the matrix or x down"
            )
        return np.split(value, count)

    def _where(
        self, peeked: Peek, key: str, metadata: AnswerMetadata, count: int
    ) -> Sequence[StoredAnswer]:
        """Where the answers that share an object lie; raises `UnusableAnswer`, `CorruptObject`."""
        header = parse_header(peeked.head)
        if peeked.size != header.offset + header.data_bytes:
            raise CorruptObject(
                f"{header.offset + header.data_bytes} bytes are announced, there are {peeked.size}"
            )
        self._check(header.shape, header.dtype, metadata, count)
        if header.fortran and len(header.shape) > 1:
            raise UnusableAnswer("WrongShape", "an answer in C order was expected")
        if not metadata.finite:
            self._parts(decode_array(self._store.bucket.get(key)), metadata, count)
        step = header.data_bytes // count
        return [StoredAnswer(key, header.offset + i * step, peeked.etag) for i in range(count)]

    def _check(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], metadata: AnswerMetadata, count: int
    ) -> None:
        wanted = (count * self._shape[0], *self._shape[1:])
        if shape != wanted or dtype != self._dtype:
            raise UnusableAnswer(
                "WrongShape",
                f"an answer of {wanted} {self._dtype} was expected, found {shape} {dtype}: is the "
                "worker function of the same version?",
            )
        if metadata.x_digest != self._x_digest or metadata.encoding != self._encoding:
            raise UnusableAnswer(
                "WrongInput", "the answer is one to another x or encoding: start a new run"
            )

    def _error(self, place: tuple[str, tuple[int, int]]) -> ErrorRecord | None:
        worker, attempt = place[1]
        try:
            return self._store.get_error(worker, attempt)
        except ObjectMissing:
            return None
        except RunRecordError as exc:
            return _unusable(worker, attempt, "RunRecordError", str(exc), fatal=False)


def _unusable(worker: int, attempt: int, kind: str, message: str, *, fatal: bool) -> ErrorRecord:
    return ErrorRecord(
        worker=worker, attempt=attempt, type=kind, message=message, where="answer", fatal=fatal
    )
