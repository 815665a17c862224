"""Resident workers in memory with simulated time: alive, slow, failing or dead as a table says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from blockstore import keys
from blockstore.runs import RunStore
from blockstore.sessions import Announcement, ResidentTask
from coordinator.ports import InvokeReport
from coordinator.report import Billing
from coordinator.residents import Residents
from coordinator.run import start_run
from coordinator.stays import Stays
from tests.coordinator.fake_platform import Answer, Fail, Platform, Refused, Silent

SESSION = keys.new_run_id(1_700_000_000_000, bytes(range(10)))
TIMEOUT, IDLE, COLD = 300.0, 30.0, 0.5

What = Answer | Fail | Refused | Silent


@dataclass
class Life:
    """One resident: from its invocation until it sees a reason to end."""

    task: ResidentTask
    begin: float
    heard: float
    dead: bool = False


@dataclass
class Fleet:
    """Implements `Invoker` for residents, whose answers appear in the platform's bucket.

    `table[worker]` says what a worker's residents do, in the order of the announcements that reach
    them; a silent one is dead from then on. Past the end of the list, and without one, they answer.
    """

    platform: Platform
    table: dict[int, list[What]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.invoked: list[tuple[int, int]] = []  # worker, generation
        self.announced: list[Announcement] = []
        self.lives: list[Life] = []
        self.closed = False
        self._reports: list[InvokeReport] = []
        self.platform.bucket.after_put = self._put

    def check(self) -> None:
        self.platform.check()

    def submit(self, tasks: Sequence[ResidentTask]) -> None:
        now = self.platform.clock.now()
        for task in tasks:
            assert ResidentTask.from_event(json.loads(json.dumps(task.to_event()))) == task
            self.invoked.append((task.worker, task.generation))
            script = self.table.get(task.worker, [])
            if script and isinstance(script[0], Refused):
                refused = script.pop(0)
                report = InvokeReport(
                    task.worker, task.attempt, refused.kind, "said so", refused.fatal
                )
                self._reports.append(report)
                continue
            self._reports.append(InvokeReport(task.worker, task.attempt))
            life = Life(task, now, now)
            self.lives.append(life)
            if self.announced:
                self._serve(life, self.announced[-1], now + COLD)

    def reports(self) -> list[InvokeReport]:
        reports, self._reports = self._reports, []
        return reports

    def close(self) -> None:
        self.closed = True

    @property
    def alive(self) -> list[Life]:
        now = self.platform.clock.now()
        return [
            life
            for life in self.lives
            if not life.dead and now < life.heard + IDLE and now < life.begin + TIMEOUT - 3.0
        ]

    def _put(self, key: str) -> None:
        if key != keys.latest_key(SESSION):
            self.platform._stop(key)
            return
        announcement = Announcement.from_json(self.platform.bucket.objects[key].body)
        self.announced.append(announcement)
        now = self.platform.clock.now()
        for life in self.alive:
            life.heard = now
            life.dead = announcement.ended or announcement.replaced(
                life.task.worker, life.task.generation
            )
            if not life.dead:
                self._serve(life, announcement, now)

    def _serve(self, life: Life, announcement: Announcement, now: float) -> None:
        task = life.task.task(announcement)
        if task is None or (task.run, task.attempt) == getattr(life, "done", None):
            return
        life.done = (task.run, task.attempt)  # type: ignore[attr-defined]
        script = self.table.get(task.worker, [])
        what = script.pop(0) if script else Answer(0.1 + task.worker / 1000)
        if isinstance(what, Silent):
            life.dead = True
        elif isinstance(what, Fail):
            self.platform._fail(task, what, now + what.after)
        elif isinstance(what, Answer):
            key = keys.result_key(task.run, task.worker)
            there = self.platform.bucket.objects.get(key)
            since = now + what.after
            if there is None or there.since > since:
                self.platform.bucket.objects[key] = self.platform._answer(task, what, since)


@dataclass
class Series:
    """A session on a platform: `multiply` is one product."""

    platform: Platform = field(default_factory=lambda: Platform(code_name="mds"))
    table: dict[int, list[What]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.fleet = Fleet(self.platform, self.table)
        self.stays = Stays(1024, TIMEOUT, 1)
        self.residents = Residents(
            self.platform.bucket,
            SESSION,
            self.platform.workers,
            self.fleet,
            self.platform.clock,
            stays=self.stays,
            timeout=TIMEOUT,
            idle_limit=IDLE,
        )

    def multiply(self, **options):
        return start_run(
            self.platform.bucket,
            self.platform.manifest,
            self.platform.x,
            invoker=self.residents,
            clock=self.platform.clock,
            on_event=self.residents.hear,
            billing=Billing(worker_timeout=TIMEOUT, worker_memory_mb=1024, stays=self.stays),
            **options,
        )

    def store(self, run: str) -> RunStore:
        return RunStore(self.platform.bucket, run)
