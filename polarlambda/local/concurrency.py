"""How many invocations may run at once: each function's reserved concurrency, the account's
limit for the rest.
"""

from __future__ import annotations

import asyncio
from collections import deque

from polarlambda.local.template import FunctionConfig


class Concurrency:
    """Counts running invocations. Reserved ones are taken off the account's limit, as on AWS."""

    def __init__(self, account_limit: int, functions: list[FunctionConfig]) -> None:
        self._reserved = {f.name: f.reserved for f in functions if f.reserved is not None}
        self._unreserved = max(0, account_limit - sum(self._reserved.values()))
        self._running: dict[str, int] = {}
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()

    def try_take(self, function: str) -> str | None:
        """Take a place; or the reason (of Lambda's API) why there is none."""
        if not self._fits(function):
            if function in self._reserved:
                return "ReservedFunctionConcurrentInvocationLimitExceeded"
            return "ConcurrentInvocationLimitExceeded"
        self._enter(function)
        return None

    async def take(self, function: str) -> None:
        """Wait for a place, first come first served within a function."""
        if self._fits(function) and not any(name == function for name, _ in self._waiting):
            self._enter(function)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((function, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if (
                turn.done() and not turn.cancelled()
            ):  # the place came together with the cancellation
                self.release(function)
            raise

    def release(self, function: str) -> None:
        """Give a place back, to whoever waits for it."""
        self._running[self._counter(function)] -= 1
        still: deque[tuple[str, asyncio.Future[None]]] = deque()
        for name, turn in self._waiting:
            if turn.done():
                continue
            if self._fits(name):
                self._enter(name)
                turn.set_result(None)
            else:
                still.append((name, turn))
        self._waiting = still

    def _counter(self, function: str) -> str:
        return function if function in self._reserved else ""

    def _fits(self, function: str) -> bool:
        limit = self._reserved.get(function, self._unreserved)
        return self._running.get(self._counter(function), 0) < limit

    def _enter(self, function: str) -> None:
        counter = self._counter(function)
        self._running[counter] = self._running.get(counter, 0) + 1
