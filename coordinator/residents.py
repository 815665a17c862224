"""The resident workers of a session, from the coordinator's side: an `Invoker` that announces.

A run begins with one PUT of the session's latest.json. Only workers that have no resident are
invoked: not yet, no longer (idle too long, time limit near), or lost. A resident that is silent too
long while runs wait for it is lost: another one, of the next generation, takes its place, even
within a run. Two harm nobody: keys depend on run and worker alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.arrays import array_digest, encode_array
from blockstore.bucket import Bucket
from blockstore.keys import validate_session, x_key
from blockstore.sessions import SHORT_X, Announcement, Asked, ResidentTask, announce
from blockstore.tasks import WorkerTask
from coordinator.events import Arrived, Event, Failed
from coordinator.invoker import LambdaInvoker
from coordinator.ports import Clock, Invocation, InvokeReport
from coordinator.stays import Stays

__all__ = ["Residents", "Seat"]

PATIENCE = 3.0  # seconds of silence after which a resident is lost, at least
SLOWER = 8.0  # times the median answer's time, the same
COLD_PATIENCE = 10.0  # seconds before the first answer, beyond three times the planned task
HANDOVER = 20.0  # seconds before its time limit at which a resident is relieved
HANDOVER_SHARE = 0.3  # of the time limit, at most
IDLE_MARGIN = 2.0  # seconds by which clocks and polls may differ
REMEMBERED = 256  # answers whose times count


@dataclass
class Seat:
    """A worker's place: its newest resident's generation (0: none yet), when that was invoked (None
    once it is known to have ended), whether it answered, how long runs waited for it in vain."""

    generation: int = 0
    invoked: float | None = None
    answered: bool = False
    silent: float = 0.0


@dataclass
class _Open:
    """The run that is on: what it is about, who was asked for what, and who was not heard of."""

    first: WorkerTask
    at: float
    x: bytes = b""
    asked: dict[int, Asked] = field(default_factory=dict)
    waiting: set[int] = field(default_factory=set)
    todo: dict[int, WorkerTask] = field(default_factory=dict)


class Residents:
    """Implements `coordinator.ports.Invoker` for all products of one session, one at a time.

    Parameters
    ----------
    session : its id; no other session may have it
    invoker : invokes the worker function
    stays : keeps account of who is alive
    timeout : the function's time limit in seconds; idle_limit : seconds after which a resident
        without work ends
    cold_seconds : planned time of one task with its block's reading
    """

    def __init__(
        self,
        bucket: Bucket,
        session: str,
        workers: int,
        invoker: LambdaInvoker,
        clock: Clock,
        *,
        stays: Stays,
        timeout: float,
        idle_limit: float,
        cold_seconds: float = 0.0,
    ) -> None:
        self.session = validate_session(session)
        self.seats = [Seat() for _ in range(workers)]
        self.stays = stays
        self._number = 0
        self._bucket = bucket
        self._invoker = invoker
        self._clock = clock
        self._timeout = timeout
        self._idle_limit = idle_limit
        self._cold_patience = COLD_PATIENCE + 3 * cold_seconds
        self._oldest: dict[int, int] = {}
        self._announced: float | None = None  # the newest announcement
        self._open: _Open | None = None
        self._times: deque[float] = deque(maxlen=REMEMBERED)
        self._accepted: list[InvokeReport] = []
        self._awaited: dict[tuple[int, int], int] = {}  # worker, generation -> attempt to report
        self._x: NDArray[Any] | None = None

    def check(self) -> None:
        """Raise `InvokeError` unless workers could be invoked."""
        self._invoker.check()

    def expect(self, x: NDArray[Any]) -> None:
        """Take x of the run that comes next: a short one is announced without reading it again."""
        self._x = x

    def submit(self, invocations: Sequence[Invocation]) -> None:
        """Announce what these tasks ask for, and invoke a resident for each worker that has none.

        Workers asked again in a run have failed or died in it: theirs are replaced. Raises the
        store's errors.
        """
        tasks = [task for task in invocations if isinstance(task, WorkerTask)]
        if len(tasks) < len(invocations):
            raise TypeError("residents serve the tasks of workers only")
        now = self._clock.now()
        run = self._open
        if run is None or run.first.run != tasks[0].run:
            run = self._open = _Open(tasks[0], now, self._short_x(tasks[0]))
        if self._idle(now):
            self._all_gone()
        fresh = []
        for task in tasks:
            seat = self.seats[task.worker]
            if task.worker in run.asked or seat.invoked is None:
                self._relieve(task.worker, now)
                fresh.append(task)
            elif now >= seat.invoked + self._timeout - self._handover:
                fresh.append(task)  # the one that is there serves until its time is up
            else:
                self._accepted.append(InvokeReport(task.worker, task.attempt))
            run.asked[task.worker] = Asked(attempt=task.attempt, todo=task.todo)
            run.todo[task.worker] = task
            run.waiting.add(task.worker)
        self._announce(run, now, len(tasks))
        self._invoke(fresh, now, report=True)

    def reports(self) -> list[InvokeReport]:
        """What has become of the tasks since the last call; replaces residents that are lost."""
        found, self._accepted = self._accepted, []
        for report in self._invoker.reports():
            attempt = self._awaited.pop((report.worker, report.attempt), None)
            if report.kind:
                self.seats[report.worker].invoked = None
            if attempt is not None:
                found.append(
                    InvokeReport(report.worker, attempt, report.kind, report.message, report.fatal)
                )
        self._replace_lost()
        return found

    def hear(self, event: Event) -> None:
        """Take in what a run says of its workers."""
        if isinstance(event, Arrived):
            seat, now = self.seats[event.worker], self._clock.now()
            if self._open is not None and event.worker in self._open.waiting:
                self._open.waiting.discard(event.worker)
                if seat.answered:  # its first time had a cold start in it
                    self._times.append(now - self._open.at)
            seat.answered, seat.silent = True, 0.0
        elif isinstance(event, Failed):  # it may have ended with that
            self.seats[event.worker].invoked = None
            if self._open is not None:
                self._open.waiting.discard(event.worker)

    def close(self) -> None:
        """The run is over: nobody waits any longer. The residents stay."""
        run, now = self._open, self._clock.now()
        if run is not None:
            for worker in run.waiting:
                self.seats[worker].silent += self._waited(run, worker, now)
            self._open = None
        self._accepted.clear()
        self._awaited.clear()

    def end(self) -> None:
        """Send the residents away, and drop invocations that have not begun. Cost: one PUT."""
        now = self._clock.now()
        try:
            if self._announced is not None and not self._idle(now):
                self._number += 1
                last = Announcement(number=self._number, ended=True)
                announce(self._bucket, self.session, last)
                self.stays.announced(0, 0)
                self.stays.end_all(now)
            elif self._announced is not None:
                self._all_gone()
        finally:
            self._invoker.close()

    @property
    def _handover(self) -> float:
        return min(HANDOVER, HANDOVER_SHARE * self._timeout)

    @property
    def patience(self) -> float:
        """Seconds of silence after which a resident that has answered before is lost."""
        return max(PATIENCE, SLOWER * median(self._times)) if self._times else PATIENCE

    def _idle(self, now: float) -> bool:
        """Whether the residents have ended, or are about to, because nothing was announced."""
        limit = self._idle_limit - min(IDLE_MARGIN, self._idle_limit / 2)
        return self._announced is not None and now >= self._announced + limit

    def _short_x(self, task: WorkerTask) -> bytes:
        """x as it is stored, if it is short enough to be announced: one GET instead of N."""
        if prod(task.x_shape) * np.dtype(task.x_dtype).itemsize > SHORT_X:
            return b""
        if self._x is not None and array_digest(self._x) == task.x_digest:
            return encode_array(self._x)
        return self._bucket.get(x_key(task.run))

    def _all_gone(self) -> None:
        """Take note that all residents have idled out."""
        assert self._announced is not None
        self.stays.end_all(self._announced + self._idle_limit)
        for seat in self.seats:
            seat.invoked = None

    def _relieve(self, worker: int, now: float) -> None:
        """Let another resident take the place of the one that is there, if one is."""
        self._oldest[worker] = self.seats[worker].generation + 1
        self.stays.end(worker, now)

    def _waited(self, run: _Open, worker: int, now: float) -> float:
        """How long this run has waited for the resident that a worker has now."""
        return now - max(run.at, self.seats[worker].invoked or run.at)

    def _replace_lost(self) -> None:
        run, now = self._open, self._clock.now()
        if run is None:
            return
        lost = []
        for worker in run.waiting:
            seat = self.seats[worker]
            patience = self.patience if seat.answered else self._cold_patience
            if seat.invoked is not None and (
                seat.silent + self._waited(run, worker, now) > patience
            ):
                lost.append(worker)
        if lost:
            for worker in lost:
                self._relieve(worker, now)
            self._announce(run, now, len(lost))
            self._invoke([run.todo[worker] for worker in sorted(lost)], now, report=False)

    def _announce(self, run: _Open, now: float, asked: int) -> None:
        """PUT latest.json. One attempt that most are asked for is said once."""
        attempts = [asked.attempt for asked in run.asked.values() if not asked.todo]
        everybody = len(run.asked) == len(self.seats) and attempts
        usual = max(set(attempts), key=attempts.count) if everybody else None
        plain = Asked(attempt=usual) if usual is not None else None
        self._number += 1
        self._announced = now
        announcement = Announcement(
            number=self._number,
            sent=now,
            run=run.first.run,
            attempt=usual,
            x_shape=run.first.x_shape,
            x_dtype=run.first.x_dtype,
            x_digest=run.first.x_digest,
            x=run.x,
            asked={w: asked for w, asked in run.asked.items() if asked != plain},
            oldest={w: generation for w, generation in self._oldest.items() if generation > 1},
        )
        announce(self._bucket, self.session, announcement)
        self.stays.announced(asked, 1 if run.x else asked)

    def _invoke(self, tasks: Sequence[WorkerTask], now: float, *, report: bool) -> None:
        """Invoke the next generation of these tasks' workers."""
        invited = []
        for task in tasks:
            seat = self.seats[task.worker]
            seat.generation, seat.invoked = seat.generation + 1, now
            seat.answered, seat.silent = False, 0.0
            self.stays.begin(task.worker, now)
            if report:
                self._awaited[task.worker, seat.generation] = task.attempt
            invited.append(
                ResidentTask(
                    session=self.session,
                    generation=seat.generation,
                    idle_limit=self._idle_limit,
                    work=task,
                )
            )
        if invited:
            self._invoker.submit(invited)
