"""Chaos for resident workers: their answers are held up on the way into the store.

A resident is invoked once and serves many runs, so a delay at its invocation would say nothing. The
S3 server asks the service about each answer that is put (`key`), and the service sleeps the delay
of that run and worker before it agrees: the worker is busy meanwhile, as a straggler is, and late
for the next run as well. One that is to die is ended, and its answer is not kept.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from blockstore import keys
from polarlambda.local.chaos import Chaos
from polarlambda.local.environment import Environment

__all__ = ["ResidentChaos", "answer_of"]

MARK = "residents"  # file in the stack's folder: the service's address, while it is to be asked


def answer_of(key: str) -> tuple[str, int] | None:
    """(run, worker) of the key of an answer; None for other keys."""
    parts = key.split("/")
    if len(parts) != 4 or not keys.is_run(parts[1]):
        return None
    for parse in (keys.parse_result_key, lambda key: keys.parse_part_key(key)[0]):
        try:
            return parts[1], parse(key)
        except ValueError:
            continue
    return None


class ResidentChaos:
    """Who is resident, and what becomes of their answers.

    `mark` is the file that tells the S3 server to ask; `sleep` sleeps a delay, or less when the
    sleepers are woken.
    """

    def __init__(self, mark: Path, sleep: Callable[[float], Awaitable[None]]) -> None:
        self.address = ""
        self._mark = mark
        self._sleep = sleep
        self._resident: dict[int, list[Environment]] = {}
        self._workers: dict[int, int] = {}
        self._invoked: set[tuple[str, int]] = set()  # had their fate when they were invoked
        self._puts: Counter[str] = Counter()  # of each answer
        self._attempts: Counter[tuple[str, int]] = Counter()  # residents that answered in a run

    def show(self, chaos: Chaos) -> None:
        """Have the S3 server ask if there are residents and anything can happen to them."""
        if self._workers and chaos.settings.touches_workers:
            self._mark.write_text(self.address)
        else:
            self._mark.unlink(missing_ok=True)

    def began(self, event: Any, environment: Environment, chaos: Chaos) -> None:
        """An invocation begins."""
        if not isinstance(event, dict) or not isinstance(worker := event.get("worker"), int):
            return
        if "session" not in event:
            self._invoked.add((str(event.get("run")), worker))
            return
        self._resident.setdefault(worker, []).append(environment)
        self._workers[worker] = int(event.get("workers", worker + 1))
        self.show(chaos)

    def ended(self, event: Any, environment: Environment) -> None:
        """An invocation ended."""
        if isinstance(event, dict) and environment in (
            there := self._resident.get(event.get("worker", -1), [])
        ):
            there.remove(environment)

    async def admit(self, key: str, chaos: Chaos) -> bool:
        """Sleep the delay of the answer that is put at `key`; False if its worker dies instead."""
        answer = answer_of(key)
        if answer is None or answer in self._invoked or answer[1] not in self._workers:
            return True
        run, worker = answer
        self._puts[key] += 1
        attempt, before = self._puts[key], self._attempts[answer]
        fate = chaos.fate_of(run, worker, self._workers[worker], attempt)
        if attempt > before:  # the first of a resident's answers in this run
            self._attempts[answer] = attempt
            if fate.delay > 0:
                await self._sleep(fate.delay)
        if fate.dies:
            await asyncio.gather(*(e.kill() for e in list(self._resident.get(worker, []))))
            return False
        return True
