"""What a run needs of the world besides the bucket: a clock and somebody who invokes workers."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

__all__ = ["Clock", "Invocation", "InvokeReport", "Invoker", "SystemClock"]


class Clock(Protocol):
    """Time in seconds since 1970, never going backwards."""

    def now(self) -> float:
        """Seconds since 1970."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait."""
        ...


class SystemClock:
    """The wall clock when it was made, advanced by the monotonic clock: comparable between
    processes, and a correction of the system's time does not move a deadline."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """Seconds since 1970."""
        return time.monotonic() + self._offset

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)


@dataclass(frozen=True)
class InvokeReport:
    """The fate of one invocation: accepted if `kind` is empty, else what went wrong."""

    worker: int
    attempt: int
    kind: str = ""
    message: str = ""
    fatal: bool = False


class Invocation(Protocol):
    """One function call: `worker` and `attempt` are how its report names it."""

    @property
    def worker(self) -> int:
        """Number of the worker, or of whatever else is one of many."""
        ...

    @property
    def attempt(self) -> int:
        """Which attempt it is."""
        ...

    def to_event(self) -> dict[str, Any]:
        """The JSON object that the function is invoked with."""
        ...


class Invoker(Protocol):
    """Starts workers asynchronously."""

    def check(self) -> None:
        """Raise `coordinator.invoker.InvokeError` unless workers could be invoked; costs nothing
        and starts nothing."""
        ...

    def submit(self, tasks: Sequence[Invocation]) -> None:
        """Begin to invoke; returns at once."""
        ...

    def reports(self) -> list[InvokeReport]:
        """What has become of invocations since the last call."""
        ...

    def close(self) -> None:
        """Drop the invocations that have not begun, wait for those under way."""
        ...
