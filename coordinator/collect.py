"""What is new in a run's part of the store: answers, error records, stop markers.

One LIST of everything below runs/<run>/ serves all three; the new objects are fetched and verified
in parallel. Only an answer that passes every check counts: length, shape, dtype, finite, digest of
x, encoding id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore import keys
from blockstore.answers import AnswerMetadata
from blockstore.arrays import decode_array
from blockstore.errors import (
    ArrayRefused,
    CorruptObject,
    ObjectMissing,
    RunRecordError,
    StoreUnavailable,
)
from blockstore.records import ErrorRecord
from blockstore.runs import RunStore
from coordinator.answers import Answers
from coordinator.ports import Clock

__all__ = ["Answer", "Collector", "Listing"]

THREADS = 16
UNAVAILABLE = 3  # listings in a row in which an answer may be unreadable before it counts as lost


@dataclass(frozen=True)
class Answer:
    """A verified answer."""

    worker: int
    value: NDArray[Any]
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


class Collector:
    """Looks into the store again and again; each object is taken in once.

    Parameters
    ----------
    store : the run's objects
    answers : what an answer has to look like
    x_digest, encoding : what it has to be an answer to
    clock : measures the listings
    threads : GETs under way at once
    """

    def __init__(
        self,
        store: RunStore,
        answers: Answers,
        *,
        x_digest: str,
        encoding: str,
        workers: int,
        clock: Clock,
        threads: int = THREADS,
    ) -> None:
        self._store = store
        self._clock = clock
        self._shape, self._dtype = answers.block_shape, answers.dtype
        self._x_digest, self._encoding, self._workers = x_digest, encoding, workers
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="collect")
        self._seen: set[str] = set()
        self._unreadable: dict[str, int] = {}

    def look(self, only: Iterable[int] | None = None) -> Listing:
        """List, fetch what is new, verify. With `only`, fetch no answers but those workers'.

        Raises `AccessDenied`, `BucketMissing`, `CredentialsMissing`, `StoreUnavailable`: those are
        the coordinator's own troubles, not a worker's.
        """
        wanted = range(self._workers) if only is None else frozenset(only)
        results: list[tuple[str, int]] = []
        errors: list[tuple[str, tuple[int, int]]] = []
        stops: set[int] = set()
        run, began = self._store.run, self._clock.now()
        for info in self._store.bucket.list(keys.run_prefix(run)):
            key = info.key
            try:
                if key.startswith(keys.stop_prefix(run)):
                    stops.add(int(key.removeprefix(keys.stop_prefix(run))))
                elif key.startswith(keys.results_prefix(run)) and key not in self._seen:
                    worker = keys.parse_result_key(key)
                    results += [(key, worker)] if worker in wanted else []
                elif key.startswith(keys.errors_prefix(run)) and key not in self._seen:
                    errors.append((key, keys.parse_error_key(key)))
            except ValueError:  # somebody else's object: no key that we write
                continue
        seconds = self._clock.now() - began
        answers: list[Answer] = []
        failures: list[ErrorRecord] = []
        rejected: set[int] = set()
        for (key, worker), found in zip(results, self._map(self._answer, results), strict=True):
            if isinstance(found, Answer):
                answers.append(found)
            elif isinstance(found, ErrorRecord):
                failures.append(found)
                rejected.add(worker)
            if found is not None:
                self._seen.add(key)
        for (key, (worker, _)), record in zip(errors, self._map(self._error, errors), strict=True):
            if record is not None and worker < self._workers:
                failures.append(record)
            self._seen.add(key)
        found_stops = frozenset(stops)
        return Listing(tuple(answers), tuple(failures), frozenset(rejected), found_stops, seconds)

    def discard(self, workers: Iterable[int]) -> None:
        """Delete unusable answers, which would keep another attempt's from being written."""
        every = sorted(workers)
        self._store.delete_results(every)
        self._seen -= {keys.result_key(self._store.run, worker) for worker in every}

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _map(self, function: Callable[[Any], Any], items: list[Any]) -> Iterable[Any]:
        return map(function, items) if len(items) < 2 else self._pool.map(function, items)

    def _answer(self, place: tuple[str, int]) -> Answer | ErrorRecord | None:
        """A verified answer, the reason why it is none, or None to look again next time."""
        key, worker = place
        attempt = 0
        try:
            body, found = self._store.bucket.get_object(key)
            metadata = AnswerMetadata.from_metadata(found)
            attempt = metadata.attempt
            value = decode_array(body)
        except ObjectMissing:
            return None
        except StoreUnavailable as exc:
            self._unreadable[key] = self._unreadable.get(key, 0) + 1
            if self._unreadable[key] < UNAVAILABLE:
                return None
            return _unusable(worker, attempt, "StoreUnavailable", str(exc), fatal=False)
        except (CorruptObject, ArrayRefused) as exc:
            return _unusable(worker, attempt, "CorruptObject", str(exc), fatal=False)
        problem = self._problem(value, metadata)
        if problem is not None:
            return _unusable(worker, attempt, *problem, fatal=True)
        return Answer(worker, value, metadata)

    def _problem(self, value: NDArray[Any], metadata: AnswerMetadata) -> tuple[str, str] | None:
        if value.shape != self._shape or value.dtype != self._dtype:
            return (
                "WrongShape",
                f"an answer of {self._shape} {self._dtype} was expected, found {value.shape} "
                f"{value.dtype}: is the worker function of the same version?",
            )
        if metadata.x_digest != self._x_digest or metadata.encoding != self._encoding:
            return (
                "WrongInput",
                "the answer is one to another x or encoding: start a new run",
            )
        if not np.isfinite(value).all():
            return (
                "NotFinite",
                "the answer has NaN or Inf: scale the matrix or x down",
            )
        return None

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
