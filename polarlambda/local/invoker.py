"""Runs invocations: chaos, time limit, log, journal; and the queue of asynchronous ones with its
retries.
"""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from polarlambda.local.chaos import Chaos, Fate
from polarlambda.local.concurrency import Concurrency
from polarlambda.local.environment import Environment, Outcome, failure
from polarlambda.local.journal import Invocation, Journal, billed_ms
from polarlambda.local.pool import EnvironmentPool, InitError
from polarlambda.local.residents import ResidentChaos
from polarlambda.local.runtime_api import Call

LOG_TAIL = 4096  # bytes of log that an answer may carry


@dataclass
class Job:
    """An accepted invocation. ``event`` is the parsed payload; ``delivery`` counts Lambda's own
    retries.
    """

    pool: EnvironmentPool
    payload: bytes
    event: Any
    client_context: str | None = None
    request_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    accepted: float = field(default_factory=time.time)
    delivery: int = 1


@dataclass(frozen=True)
class Finished:
    """How a job ended, and the last 4 KB of its log."""

    outcome: Outcome
    log_tail: bytes


@dataclass
class _Timing:
    """What is noted while an invocation runs; `Invocation` says what the fields mean."""

    environment: Environment
    cold: bool
    started: float
    handed: float | None = None
    delay: float = 0.0
    duration_ms: float = 0.0
    log_start: int = 0


class Invoker:
    """``retry_delay``: seconds before an asynchronous invocation is tried again (AWS: a minute,
    then two). ``mark``: see `residents.ResidentChaos`.
    """

    def __init__(
        self,
        concurrency: Concurrency,
        chaos: Chaos,
        journal: Journal,
        *,
        retry_delay: float,
        mark: Path,
    ) -> None:
        self.chaos = chaos
        self.residents = ResidentChaos(mark, self._sleep)
        self._concurrency = concurrency
        self._journal = journal
        self._retry_delay = retry_delay
        self._queued: set[asyncio.Task[None]] = set()  # asynchronous, not running now
        self._tasks: set[asyncio.Task[None]] = set()
        self._running = 0
        self._sleepers = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._wake = asyncio.Event()

    async def invoke(self, job: Job) -> Finished | str:
        """Run ``job`` now; or the reason why it is throttled."""
        reason = self._concurrency.try_take(job.pool.function.name)
        return reason if reason is not None else await self._run(job)

    def enqueue(self, job: Job) -> None:
        """Accept ``job`` to be run when there is room, and again when it fails, as its
        function's settings say.
        """
        task = asyncio.get_running_loop().create_task(self._deliver(job))
        self._tasks.add(task)
        self._queued.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(self._queued.discard)

    def activity(self) -> dict[str, int]:
        """How many invocations wait in the queue, run (asleep or not), and sleep their delay."""
        return {"queued": len(self._queued), "running": self._running, "sleeping": self._sleepers}

    async def drain(self, *, wait: bool) -> int:
        """Drop what is queued, end what sleeps (outcome drained; the environments stay warm);
        with ``wait``, return when the handlers that are running have ended too. Returns how many
        were dropped or woken.
        """
        dropped = len(self._queued)
        for task in list(self._queued):
            task.cancel()
        sleeping, self._wake = self._wake, asyncio.Event()
        before = self._sleepers
        sleeping.set()
        if wait:
            await self._quiet.wait()
        return dropped + before

    async def _deliver(self, job: Job) -> None:
        function = job.pool.function
        task = asyncio.current_task()
        assert task is not None
        while True:
            await self._concurrency.take(function.name)
            if time.time() - job.accepted > function.event_age:
                self._concurrency.release(function.name)
                self._journal.append(_record(job, "expired", None, 0, time.time()))
                return
            self._queued.discard(task)
            finished = await self._run(job)
            if finished.outcome.error_type is None or finished.outcome.kind == "drained":
                return
            if job.delivery > function.retries:
                return
            job.delivery += 1
            self._queued.add(task)
            await asyncio.sleep(self._retry_delay)

    async def _run(self, job: Job) -> Finished:
        """Run in an environment; the concurrency's place is taken already, given back here."""
        self._running += 1
        self._quiet.clear()
        try:
            environment = await job.pool.acquire()
            self.residents.began(job.event, environment, self.chaos)
            try:
                return await self._run_in(environment, job)
            finally:
                self.residents.ended(job.event, environment)
                job.pool.release(environment)
        except InitError as error:
            timing = _Timing(error.environment, cold=True, started=time.time())
            return self._finish(job, error.outcome, timing)
        finally:
            self._concurrency.release(job.pool.function.name)
            self._running -= 1
            if self._running == 0:
                self._quiet.set()

    async def _run_in(self, environment: Environment, job: Job) -> Finished:
        function = job.pool.function
        loop = asyncio.get_running_loop()
        began = loop.time()
        timing = _Timing(environment, cold=not environment.used, started=time.time())
        environment.used = True
        timing.log_start = _log(
            environment, f"START RequestId: {job.request_id} Version: $LATEST\n"
        )
        fate = self.chaos.fate(job.event)
        timing.delay = fate.delay
        call = Call(
            job.request_id,
            job.payload,
            function.arn,
            int((timing.started + function.timeout) * 1000),
            job.client_context,
        )
        outcome = await self._before_handler(environment, call, fate, function.timeout)
        if outcome is None:
            timing.handed = time.time()
            outcome = await environment.run(call, began + function.timeout)
        timing.duration_ms = (loop.time() - began) * 1000
        if outcome.kind == "timeout":
            timing.duration_ms = function.timeout * 1000
        return self._finish(job, outcome, timing)

    def _finish(self, job: Job, outcome: Outcome, timing: _Timing) -> Finished:
        """Write the journal and the log's last lines."""
        environment = timing.environment
        init = environment.init_ms if timing.cold else 0.0
        record = _record(
            job,
            outcome.kind,
            outcome.error_type,
            environment.number,
            timing.started,
            cold=timing.cold,
            handed=timing.handed,
            delay=timing.delay,
            init_ms=init,
            duration_ms=timing.duration_ms,
            billed_ms=billed_ms(timing.duration_ms, init),
            peak_memory=environment.peak_memory,
        )
        self._journal.append(record)
        lines = [f"END RequestId: {job.request_id}", record.report_line()]
        if outcome.kind not in ("answered", "error"):
            lines.insert(0, json.loads(outcome.payload)["errorMessage"])
        _log(environment, "\n".join(lines) + "\n")
        with environment.log.open("rb") as log:
            log.seek(timing.log_start)
            return Finished(outcome, log.read()[-LOG_TAIL:])

    async def _before_handler(
        self, environment: Environment, call: Call, fate: Fate, limit: float
    ) -> Outcome | None:
        """Sleep the delay: the environment is busy, the handler has not seen the event. None: go
        on.
        """
        if fate.delay > 0:
            if await self._sleep(min(fate.delay, limit)):
                return failure("drained", "Runtime.ExitError", call.request_id, "drained")
            if fate.delay >= limit:
                return await environment.time_out(call)
        return await environment.fail(call) if fate.dies else None

    async def _sleep(self, seconds: float) -> bool:
        """Sleep a delay; True if the sleepers were woken before it was over."""
        self._sleepers += 1
        try:
            await asyncio.wait_for(self._wake.wait(), seconds)
        except TimeoutError:
            return False
        finally:
            self._sleepers -= 1
        return True


def _record(
    job: Job, kind: str, error_type: str | None, environment: int, started: float, **more: Any
) -> Invocation:
    event = job.event if isinstance(job.event, dict) else {}
    return Invocation(
        function=job.pool.function.name,
        request_id=job.request_id,
        run=event.get("run"),
        worker=event.get("worker"),
        attempt=event.get("attempt"),
        delivery=job.delivery,
        environment=environment,
        outcome=kind,
        error_type=error_type,
        accepted=job.accepted,
        started=started,
        ended=time.time(),
        memory_mb=job.pool.function.memory,
        **more,
    )


def _log(environment: Environment, text: str) -> int:
    """Append to the environment's log; returns where the text begins."""
    with environment.log.open("ab") as log:
        start = log.tell()
        log.write(text.encode())
    return start
