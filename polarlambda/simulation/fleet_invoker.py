"""Invocations on virtual time: a client's thread pool, or a tree of dispatch functions."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence

from blockstore.tasks import WorkerTask
from coordinator.ports import InvokeReport
from polarlambda.simulation.fleet_lambda import FleetLambda
from polarlambda.simulation.fleet_limits import FleetLimits
from polarlambda.simulation.fleet_world import World

__all__ = ["PoolInvoker"]


class Pool:
    """Threads of one process that make requests, and its one processor."""

    def __init__(self, world: World, threads: int, cpu: float) -> None:
        self._world, self._cpu = world, cpu
        self._lanes = [world.time] * threads
        self._processor = world.time

    def request(self, seconds: float, done: Callable[[], None]) -> None:
        """Make one that takes `seconds`; `done` happens then."""
        begin = max(self._lanes[0], self._world.time)
        self._processor = max(self._processor, begin) + self._cpu
        end = max(begin + seconds, self._processor)
        heapq.heapreplace(self._lanes, end)
        self._world.at(end, done)


class PoolInvoker:
    """`coordinator.invoker.LambdaInvoker` on virtual time."""

    def __init__(self, world: World, limits: FleetLimits, function: FleetLambda) -> None:
        self._world, self._function = world, function
        self._seconds = limits.platform.invoke_seconds
        self._pool = Pool(world, limits.platform.invoke_threads, limits.invoke_cpu)
        self._reports: list[InvokeReport] = []
        self._closed = False
        self.requests = 0

    def check(self) -> None:
        """Nothing is missing here."""

    def submit(self, tasks: Sequence[WorkerTask]) -> None:
        """See `coordinator.ports.Invoker.submit`."""
        with self._world.outside():
            for task in tasks:
                self._pool.request(self._seconds, lambda task=task: self._accept(task))

    def reports(self) -> list[InvokeReport]:
        """See `coordinator.ports.Invoker.reports`."""
        with self._world.outside():
            reports, self._reports = self._reports, []
            return reports

    def close(self) -> None:
        """See `coordinator.ports.Invoker.close`."""
        self._closed = True

    def _accept(self, task: WorkerTask) -> None:
        if self._closed:
            return
        self.requests += 1
        self._function.invoke(task)
        self._reports.append(InvokeReport(task.worker, task.attempt))
