"""A tree of invocations: a few dispatch functions, each of which invokes a part of the workers.

One client makes 640 asynchronous invocations a second at best (32 threads, 50 ms each), so that the
last of 4,096 workers begins 6 seconds late. Dispatch functions are invoked synchronously: each
tells what became of its part, and where one fails, dies half-way or cannot be reached, the
coordinator invokes that part itself. A worker that is invoked twice by that is harmless.

All of them at once would be faster than S3 can serve the workers, which then wait for each other,
are billed for it, and give up. So part after part is asked, at `coordinator.start_rate.task_rate`.
"""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from coordinator.invoker import InvokeError, InvokeUnavailable, LambdaInvoker
from coordinator.ports import Invocation, InvokeReport
from coordinator.tree import MOST_PART, TREE_FROM, parts

__all__ = [
    "DispatchEvent",
    "DispatchRefused",
    "TreeInvoker",
    "make_invoker",
    "reply",
]

VERSION = 1


class DispatchRefused(ValueError):
    """An event that is none of a dispatch function."""


@dataclass(frozen=True)
class Message:
    """A worker's event, as it is; what `LambdaInvoker` needs of a `WorkerTask`."""

    worker: int
    attempt: int
    event: dict[str, Any]

    def to_event(self) -> dict[str, Any]:
        """The event."""
        return self.event


@dataclass(frozen=True)
class DispatchEvent:
    """The event of a dispatch function: what its workers' events have in common, once, and what is
    each one's own. Some bytes for each worker: a part of 512 is a few KB."""

    common: dict[str, Any]
    own: tuple[dict[str, Any], ...]

    @classmethod
    def of(cls, tasks: Sequence[Invocation]) -> DispatchEvent:
        """The event that has `tasks`, at least one, of one run and attempt, invoked."""
        events = [task.to_event() for task in tasks]
        common = {
            name: value
            for name, value in events[0].items()
            if all(name in event and event[name] == value for event in events)
        }
        own = [{k: v for k, v in event.items() if k not in common} for event in events]
        return cls(common, tuple(own))

    def to_json(self) -> dict[str, Any]:
        """The event as a JSON object."""
        return {"version": VERSION, "common": self.common, "own": list(self.own)}

    @classmethod
    def from_json(cls, event: Any) -> DispatchEvent:
        """Read and check; raises `DispatchRefused` naming the field and the rule."""
        if not isinstance(event, dict) or event.get("version") != VERSION:
            raise DispatchRefused(f"dispatch event: version must be {VERSION}")
        common, own = event.get("common"), event.get("own")
        if not isinstance(common, dict):
            raise DispatchRefused(f"dispatch event: common must be an object, got {common!r:.80}")
        if not isinstance(own, list) or not 1 <= len(own) <= MOST_PART:
            raise DispatchRefused(f"dispatch event: own must be a list of 1 to {MOST_PART} objects")
        if not all(isinstance(each, dict) for each in own):
            raise DispatchRefused("dispatch event: own must hold objects")
        found = cls(common, tuple(own))
        for message in found.messages():
            if type(message.worker) is not int or type(message.attempt) is not int:
                raise DispatchRefused("dispatch event: worker and attempt must be ints")
        return found

    def messages(self) -> list[Message]:
        """The workers' events."""
        whole = [{**self.common, **each} for each in self.own]
        return [Message(e.get("worker", ""), e.get("attempt", ""), e) for e in whole]


def make_invoker(
    client: Any,
    worker: str,
    dispatch: str = "",
    *,
    threads: int = 32,
    least: int = TREE_FROM,
    checked: bool = False,
) -> LambdaInvoker | TreeInvoker:
    """An invoker of the worker function, through the dispatch function if there is one."""
    direct = LambdaInvoker(client, worker, threads=threads, checked=checked)
    if not dispatch:
        return direct
    return TreeInvoker(direct, LambdaInvoker(client, dispatch), threads=threads, least=least)


class TreeInvoker:
    """Invokes few workers itself and many through dispatch functions (implements
    `coordinator.ports.Invoker`).

    Parameters
    ----------
    direct : invokes the worker function
    dispatch : the dispatch function, behind the same client
    threads : dispatch functions under way at once
    least : workers from which on dispatch functions are used
    """

    def __init__(
        self,
        direct: LambdaInvoker,
        dispatch: LambdaInvoker,
        *,
        threads: int = 32,
        least: int = TREE_FROM,
    ) -> None:
        self._direct, self._dispatch = direct, dispatch
        self._threads, self._least = threads, least
        self._reports: queue.SimpleQueue[InvokeReport] = queue.SimpleQueue()
        self._pool: ThreadPoolExecutor | None = None
        self._closed = threading.Event()

    def check(self) -> None:
        """The worker function is there and may be invoked."""
        self._direct.check()

    def submit(self, tasks: Sequence[Invocation]) -> None:
        """Begin to invoke `tasks`; `reports` tells what became of them."""
        if len(tasks) < self._least or self._closed.is_set():  # closed: it says so
            self._direct.submit(tasks)
            return
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="dispatch")
        from coordinator.start_rate import task_rate  # NumPy, which dispatch functions do without

        size, began = parts(len(tasks), self._threads), time.monotonic()
        rate = task_rate(tasks[0], len(tasks))
        for first in range(0, len(tasks), size):
            self._pool.submit(self._send, tasks[first : first + size], began + first / rate)

    def reports(self) -> list[InvokeReport]:
        """Reports of the invocations that ended since the last call."""
        found = self._direct.reports()
        while True:
            try:
                found.append(self._reports.get_nowait())
            except queue.Empty:
                return found

    def close(self) -> None:
        """Drop what has not begun, wait for what has."""
        self._closed.set()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)
        self._direct.close()

    def _send(self, tasks: Sequence[Invocation], at: float) -> None:
        """Have a part invoked when it is time (monotonic); who was not, by its dispatch function's
        word or its silence, is invoked from here."""
        if self._closed.wait(max(0.0, at - time.monotonic())):
            return
        event = DispatchEvent.of(tasks).to_json()
        try:
            reports = _read(self._dispatch.ask(event), tasks)
        except InvokeError as exc:
            if exc.fatal:  # the dispatch function is not there, or may not be invoked: to be shown
                kind, text = type(exc).__name__, str(exc)
                for task in tasks:
                    self._reports.put(InvokeReport(task.worker, task.attempt, kind, text, True))
                return
            reports = {}
        for report in reports.values():
            self._reports.put(report)
        left = [task for task in tasks if task.worker not in reports]
        if left and not self._closed.is_set():
            self._direct.submit(left)


def reply(reports: Sequence[InvokeReport]) -> dict[str, Any]:
    """What a dispatch function answers: who was accepted, and what went wrong with others.

    Trouble that may pass is left out: the coordinator tries those again.
    """
    said = [r for r in reports if not r.kind or r.fatal]
    return {
        "version": VERSION,
        "accepted": [r.worker for r in said if not r.kind],
        "failed": [
            {"worker": r.worker, "kind": r.kind, "message": r.message} for r in said if r.kind
        ],
    }


def _read(answer: Any, tasks: Sequence[Invocation]) -> dict[int, InvokeReport]:
    """The reports of an answer by worker; raises `InvokeUnavailable` if it is none."""
    attempts = {task.worker: task.attempt for task in tasks}
    try:
        found = {w: InvokeReport(w, attempts[w]) for w in answer["accepted"]}
        for each in answer["failed"]:
            worker = each["worker"]
            attempt, kind, text = attempts[worker], str(each["kind"]), str(each["message"])
            found[worker] = InvokeReport(worker, attempt, kind, text, fatal=True)
    except (KeyError, TypeError) as exc:
        text = json.dumps(answer, default=str)[:200]
        raise InvokeUnavailable(f"a dispatch function answered {text}") from exc
    return found
