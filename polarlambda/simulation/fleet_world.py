"""Virtual time: events in order, and the processor time of the coordinator charged to its clock."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

__all__ = ["World", "WorldClock"]

EPOCH = 1_800_000_000.0  # seconds since 1970, for the ids and dates of a simulated run


class World:
    """The events of a simulation, by time; those of the same time in the order they were made.

    The coordinator is an ordinary Python thread that calls in: `wait_until` lets everything happen
    that is due before. `parallel` requests of it do not make it wait one by one: what they take is
    remembered in `busy_until`, and waited for at the next sequential step.

    charge : processor seconds of the coordinator's own code count as time (measured on this
        machine), or 0.0 for a simulation that gives the same figures everywhere
    """

    def __init__(self, charge: float = 0.0) -> None:
        self.time = EPOCH
        self.busy_until = EPOCH
        self.computed = 0.0  # processor seconds charged
        self._charge = charge
        self._mark = time.process_time()
        self._debt = 0.0
        self._order = count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []

    def at(self, when: float, action: Callable[[], None]) -> None:
        """Have `action` happen at `when`, or now if that is over."""
        heapq.heappush(self._events, (max(when, self.time), next(self._order), action))

    def wait_until(self, when: float) -> None:
        """Let all events up to `when` happen; it is `when` then."""
        events = self._events
        while events and events[0][0] <= when:
            self.time, _, action = heapq.heappop(events)
            action()
        self.time = max(self.time, when)

    @contextmanager
    def outside(self, *, parallel: bool = False) -> Iterator[None]:
        """Code of the simulation, called by the coordinator: what the coordinator computed since
        it last left here is charged, and unless it asks in parallel, its requests are waited for.
        """
        spent = (time.process_time() - self._mark) * self._charge
        self.computed += spent
        self._debt += spent
        if not parallel:
            ready = max(self.busy_until, self.time) + self._debt
            self._debt = 0.0
            self.wait_until(ready)
        try:
            yield
        finally:
            self._mark = time.process_time()


class WorldClock:
    """`coordinator.ports.Clock` of a world."""

    def __init__(self, world: World) -> None:
        self._world = world

    def now(self) -> float:
        """Seconds since 1970."""
        with self._world.outside():
            return self._world.time

    def sleep(self, seconds: float) -> None:
        """Let time pass; a millisecond at least, so that a loop gets on."""
        with self._world.outside():
            self._world.wait_until(self._world.time + max(seconds, 1e-3))
