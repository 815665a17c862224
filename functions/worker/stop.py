"""A product's looks for the stop marker of its attempt."""

from __future__ import annotations

import time
from collections.abc import Callable

from blockstore.pair_tasks import Task
from blockstore.stops import STOP_INTERVAL, is_fresh
from functions.worker.faults import RunStopped

__all__ = ["Looks"]


class Looks:
    """Raises `RunStopped` when a look shows the marker; `count` says how many looks there were."""

    def __init__(self, task: Task, stopped: Callable[[], bool]) -> None:
        self.count = 0
        self._task = task
        self._stopped = stopped
        self._last = time.monotonic()

    def before(self, what: str = "") -> None:
        """Look before the worker starts, or starts `what`, unless it was invoked only just now."""
        if not is_fresh(self._task.sent, time.time()):
            self._look(f"before worker {self._task.worker} started{what}")

    def between(self) -> None:
        """Look, between two tiles, if the last look was a while ago."""
        now = time.monotonic()
        if now - self._last > STOP_INTERVAL:
            self._last = now
            self._look(f"while worker {self._task.worker} worked")

    def _look(self, when: str) -> None:
        self.count += 1
        if self._stopped():
            raise RunStopped(f"run {self._task.run} was stopped {when}")
