"""Invocations on virtual time: a client's thread pool, or a tree of dispatch functions."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence

from coordinator.ports import Invocation, InvokeReport
from coordinator.start_rate import task_rate
from coordinator.tree import parts
from polarlambda.simulation.fleet_lambda import FleetLambda
from polarlambda.simulation.fleet_limits import FleetLimits
from polarlambda.simulation.fleet_world import World

__all__ = ["FleetInvoker"]


class Pool:
    """Threads of one process that make requests, and its one processor."""

    def __init__(self, world: World, threads: int, cpu: float) -> None:
        self._world, self._cpu = world, cpu
        self._lanes = [world.time] * threads
        self._processor = world.time

    def request(self, seconds: float, done: Callable[[], None]) -> float:
        """Make one that takes `seconds`; `done` happens when it is over, which is returned."""
        begin = max(self._lanes[0], self._world.time)
        self._processor = max(self._processor, begin) + self._cpu
        end = max(begin + seconds, self._processor)
        heapq.heapreplace(self._lanes, end)
        self._world.at(end, done)
        return end


class FleetInvoker:
    """`LambdaInvoker` and `TreeInvoker` on virtual time.

    A dispatch function is asked synchronously, part after part at `coordinator.start_rate`: a
    thread of the client waits for it while it starts and makes the invocations of its part with
    threads and a processor of its own.
    """

    def __init__(
        self,
        world: World,
        limits: FleetLimits,
        function: FleetLambda,
        tree_from: int,
        paced: bool = True,
    ) -> None:
        self._world, self._limits, self._function = world, limits, function
        self._tree_from, self._paced = tree_from, paced
        self._threads = limits.platform.invoke_threads
        self._pool = Pool(world, self._threads, limits.invoke_cpu)
        self._waiters = Pool(world, self._threads, limits.invoke_cpu)
        self._reports: list[InvokeReport] = []
        self._closed = False
        self.requests = 0  # of the coordinator
        self.dispatches = 0

    def check(self) -> None:
        """Nothing is missing here."""

    def submit(self, tasks: Sequence[Invocation]) -> None:
        """See `coordinator.ports.Invoker.submit`."""
        with self._world.outside():
            if len(tasks) < self._tree_from:
                for task in tasks:
                    self._direct(task)
                return
            size, began = parts(len(tasks), self._threads), self._world.time
            rate = math.inf
            if self._paced:
                rate = task_rate(tasks[0], len(tasks), self._limits.platform)
            for first in range(0, len(tasks), size):
                part = tasks[first : first + size]
                self._world.at(began + first / rate, lambda part=part: self._dispatch(part))

    def reports(self) -> list[InvokeReport]:
        """See `coordinator.ports.Invoker.reports`."""
        with self._world.outside():
            reports, self._reports = self._reports, []
            return reports

    def close(self) -> None:
        """See `coordinator.ports.Invoker.close`."""
        self._closed = True

    def _direct(self, task: Invocation) -> None:
        seconds = self._limits.platform.invoke_seconds

        def accepted() -> None:
            if not self._closed:
                self.requests += 1
                self._function.invoke(task)
                self._reports.append(InvokeReport(task.worker, task.attempt))

        self._pool.request(seconds, accepted)

    def _dispatch(self, tasks: Sequence[Invocation]) -> None:
        """The time that a dispatch function takes is known when it is asked."""
        if self._closed:
            return
        limits = self._limits
        seconds = limits.platform.invoke_seconds
        waves = -(-len(tasks) // self._threads)
        work = max(waves * seconds, len(tasks) * limits.invoke_cpu)
        whole = seconds + limits.platform.dispatch_seconds + work
        reports = [InvokeReport(task.worker, task.attempt) for task in tasks]

        def answered() -> None:
            self._reports += reports

        end = self._waiters.request(whole, answered)
        self.requests += 1
        self.dispatches += 1
        for number, task in enumerate(tasks):
            done = max((number // self._threads + 1) * seconds, (number + 1) * limits.invoke_cpu)
            self._world.at(end - work + done, lambda task=task: self._start(task))

    def _start(self, task: Invocation) -> None:
        if not self._closed:
            self._function.invoke(task)
