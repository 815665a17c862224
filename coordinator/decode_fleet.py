"""Decode functions: ranges of one decoding, each done by a function that may straggle or die."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from blockstore import decode_keys
from blockstore.bucket import Bucket
from blockstore.errors import ObjectMissing
from coordinator.check import Check
from coordinator.cut import Span, even
from coordinator.decode_job import DecodeJob, get_checks
from coordinator.decode_tasks import DecodeTask
from coordinator.ports import Clock, Invoker
from coordinator.stored_answers import AnswerLost

__all__ = ["DecodeFailed", "DecodeFunctions", "Fleet"]

POLL_SECONDS = 0.2
SLOWEST = 2.0
ATTEMPTS = 3
LATE = 3.0  # times as long as the slowest range that is done: started once more
LEAST_PATIENCE = 5.0  # seconds


class DecodeFailed(RuntimeError):
    """A range could not be decoded by any attempt; the message says why."""


@dataclass(frozen=True)
class DecodeFunctions:
    """The deployed decode function: how it is invoked, its memory in bytes and time limit in
    seconds, and how many of them may work at once."""

    invoker: Callable[[], Invoker]
    memory: int
    timeout: float
    most: int = 64


@dataclass
class _Range:
    task: DecodeTask
    began: float
    failure: str = ""
    fatal: bool = False
    place: int | None = None  # of the answer that was lost


@dataclass
class Fleet:
    """Has the ranges of a stage done. A range that failed, is silent past the function's time
    limit, or far behind the others is started once more: what it writes is the same. `invoked`
    counts the invocations, `units` the windows and parts that they were asked for (once each),
    `seconds` adds up how long each was waited for."""

    bucket: Bucket
    job: DecodeJob
    functions: DecodeFunctions
    clock: Clock
    time_left: Callable[[], float | None]
    invoked: int = 0
    units: int = 0
    seconds: float = 0.0
    _tries: dict[int, int] = field(default_factory=dict)
    _before: int = 0  # the highest attempt that an earlier coordinator's records name

    def run(self, stage: str, count: int, reserve: float) -> Check | None:
        """Have `count` windows or parts done; what the equations say, or None when less than
        `reserve` seconds are left: another coordinator finds what is done.

        Raises `DecodeFailed`, `AnswerLost`, `blockstore.errors.StoreError`.
        """
        spans = even(count, min(count, self.functions.most))
        self._tries, self._before = {}, self._last_attempt(stage)
        done = get_checks(self.bucket, self.job, stage, {})
        open_ranges: dict[int, _Range] = {}
        times: list[float] = []
        invoker = self.functions.invoker()
        try:
            wanted = [n for n in range(len(spans)) if n not in done]
            while len(done) < len(spans):
                self._start(invoker, stage, spans, wanted, open_ranges)
                left = self.time_left()
                if left is not None and left < reserve:
                    return None
                self.clock.sleep(min(SLOWEST, POLL_SECONDS + 0.02 * sum(times[-1:])))
                now = self.clock.now()
                get_checks(self.bucket, self.job, stage, done)
                for number in open_ranges.keys() & done.keys():
                    times.append(now - open_ranges.pop(number).began)
                    self.seconds += times[-1]
                self._hear(invoker, stage, open_ranges)
                wanted = self._again(open_ranges, times, now)
        finally:
            invoker.close()
        return sum((done[n] for n in range(len(spans))), Check())

    def _last_attempt(self, stage: str) -> int:
        """What failed for an earlier coordinator may have been put right since: attempts are
        numbered on, so that its records are not taken for news."""
        prefix = decode_keys.decode_error_prefix(self.job.run, self.job.decoding)
        named = [
            info.key.removeprefix(prefix).split(".")
            for info in self.bucket.list(prefix + f"{stage}.")
        ]
        attempts = (parts[2] for parts in named if len(parts) == 4)
        return max((int(attempt) for attempt in attempts if attempt.isdecimal()), default=0)

    def _start(
        self,
        invoker: Invoker,
        stage: str,
        spans: Sequence[Span],
        numbers: Sequence[int],
        open_ranges: dict[int, _Range],
    ) -> None:
        tasks = []
        for number in numbers:
            tried = self._tries[number] = self._tries.get(number, 0) + 1
            attempt = self._before + tried
            first, last = spans[number]
            self.units += last - first if tried == 1 else 0
            task = DecodeTask(self.job.run, self.job.decoding, stage, number, first, last, attempt)
            tasks.append(task)
            open_ranges[number] = _Range(task, self.clock.now())
        if tasks:
            self.invoked += len(tasks)
            invoker.submit(tasks)

    def _hear(self, invoker: Invoker, stage: str, open_ranges: dict[int, _Range]) -> None:
        """Note what failed: invocations, and what functions wrote down."""
        for report in invoker.reports():
            found = open_ranges.get(report.worker)
            if found is not None and report.kind and report.attempt == found.task.attempt:
                found.failure, found.fatal = f"{report.kind}: {report.message}", report.fatal
        run, decoding = self.job.run, self.job.decoding
        waited_for = {
            decode_keys.decode_error_key(run, decoding, stage, number, found.task.attempt): found
            for number, found in open_ranges.items()
            if not found.failure
        }
        for info in self.bucket.list(decode_keys.decode_error_prefix(run, decoding)):
            if info.key in waited_for:
                self._read_failure(info.key, waited_for[info.key])

    def _read_failure(self, key: str, found: _Range) -> None:
        try:
            record = json.loads(self.bucket.get(key))
            found.failure = f"{record['type']}: {record['message']}"
            found.fatal = bool(record["fatal"])
            found.place = record["place"]
        except (ObjectMissing, ValueError, KeyError, TypeError):
            found.failure = "its error record cannot be read"

    def _again(
        self, open_ranges: dict[int, _Range], times: Sequence[float], now: float
    ) -> list[int]:
        """The ranges to start once more; raises `DecodeFailed` where that is no use."""
        again = []
        patience = self.functions.timeout
        if times and len(times) >= len(open_ranges):
            patience = min(patience, max(LEAST_PATIENCE, LATE * max(times)))
        for number, found in open_ranges.items():
            silent = now - found.began > patience
            if not found.failure and not silent:
                continue
            tried = self._tries[number]
            if found.place is not None:
                raise AnswerLost(found.place, found.failure)
            if found.fatal or (tried >= ATTEMPTS and found.failure):
                raise DecodeFailed(f"decoding of range {number} failed: {found.failure}")
            if tried >= ATTEMPTS and now - found.began > self.functions.timeout:
                raise DecodeFailed(
                    f"decoding of range {number}: no sign of life from {tried} invocations within "
                    f"{self.functions.timeout:g} s each"
                )
            if tried < ATTEMPTS:
                again.append(number)
        return again
