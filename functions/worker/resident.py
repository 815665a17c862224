"""A resident worker: loads its coded blocks once, then serves the runs of its session.

It looks at the session's newest announcement again and again (an unchanged one costs a GET without
a body), and does what that asks of its worker with the blocks in memory: per product it reads x (a
short one comes with the announcement) and writes its answer. Runs that were superseded before it
saw them are skipped. It ends when the session has ended, another resident took its place, nothing
was announced for its idle limit (its coordinator may be dead), or the function's time limit is
near.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from blockstore import keys
from blockstore.arrays import decode_array
from blockstore.bucket import Bucket
from blockstore.errors import ObjectMissing, StoreUnavailable
from blockstore.runs import RunStore
from blockstore.sessions import Announcement, ResidentTask
from blockstore.tasks import WorkerTask
from blockstore.tiling import TileSpan
from functions import log
from functions.worker import one, report, several
from functions.worker.polling import Polling
from functions.worker.product import Inputs, stop_marker, take_x
from functions.worker.tiles import stream_tiles

__all__ = ["Resident", "serve"]

Tiles = Iterator[tuple[TileSpan, NDArray[Any]]]

RESERVE = 3.0  # seconds before the time limit, beyond twice the longest task, at which it ends
FRESH = 0.5  # seconds after a look that showed the run to be on, without another look for a stop


def serve(
    bucket: Bucket, resident: ResidentTask, time_left: Callable[[], float], cold: bool
) -> dict[str, Any]:
    """Serve the session until there is a reason to end.

    Returns {state: ended, reason: session | replaced | idle | time, served: N}, or {state: failed}
    when the blocks cannot be loaded or the announcements not be read: the newest run is told.
    """
    return Resident(bucket, resident, time_left, cold).run()


class Resident:
    """One invocation of a resident; `now` and `sleep` are the clock."""

    def __init__(
        self,
        bucket: Bucket,
        resident: ResidentTask,
        time_left: Callable[[], float],
        cold: bool,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._bucket = bucket
        self._resident = resident
        self._time_left = time_left
        self._cold = cold
        self._now = now
        self._sleep = sleep
        self._polling = Polling(resident.work.workers)
        self._etag: str | None = None
        self._number = 0
        self._done: tuple[str, int] = ("", 0)  # run and attempt served last
        self._known = resident.work  # the newest task: where a failure is told
        self._looked = float("-inf")
        self._on = float("-inf")  # when the run was last seen to be on
        self._polls = self._served = 0
        self._longest = 0.0

    def run(self) -> dict[str, Any]:
        """Load, then look and serve until the end; see `serve`."""
        try:
            return self._run()
        except Exception as exc:  # noqa: BLE001 - whoever waits for this worker must hear of it
            return report.failure(RunStore(self._bucket, self._known.run), self._known, exc)

    def _run(self) -> dict[str, Any]:
        inputs = Inputs(tiles=self._load(), stopped=self._stopped)
        heard = self._now()
        while True:
            if self._time_left() < RESERVE + 2 * self._longest:
                return self._end("time")
            announced = self._look()
            if announced is None:
                if self._now() - heard > self._resident.idle_limit:
                    return self._end("idle")
                self._sleep(self._polling.pause(self._now()))
                continue
            heard = self._now()
            self._polling.announced(heard, announced.sent)
            if announced.ended:
                return self._end("session")
            if announced.replaced(self._resident.worker, self._resident.generation):
                return self._end("replaced")
            task = self._resident.task(announced)
            if task is not None and (task.run, task.attempt) != self._done:
                self._known = task
                self._serve(task, inputs, announced.x)
                self._sleep(self._polling.before(self._now()))  # the others answer, too

    def _load(self) -> Callable[[RunStore, WorkerTask, int], Tiles]:
        """The tiles of all of this worker's blocks, in memory from here on.

        Of several blocks one may be missing or damaged: that is told when it is asked for.
        """
        work = self._resident.work
        store = RunStore(self._bucket, work.run)
        blocks: list[list[tuple[TileSpan, NDArray[Any]]] | Exception] = []
        for subtask in range(work.subtasks):
            try:
                blocks.append(list(stream_tiles(store, work, subtask)))
            except several.ONE_BLOCK as exc:
                if work.subtasks == 1:
                    raise
                blocks.append(exc)

        def tiles(store: RunStore, task: WorkerTask, subtask: int) -> Tiles:
            block = blocks[subtask]
            if isinstance(block, Exception):
                raise block
            return iter(block)

        return tiles

    def _look(self) -> Announcement | None:
        """The newest announcement if this resident has not seen it."""
        self._polls += 1
        before, self._looked = self._looked, self._now()
        try:
            found = self._bucket.get_changed(keys.latest_key(self._resident.session), self._etag)
        except (ObjectMissing, StoreUnavailable):  # it comes before us; S3 may be busy
            return None
        if found is None:
            return None
        self._etag, self._on = found[1], before
        announced = Announcement.from_json(found[0])
        if announced.number <= self._number:
            return None
        self._number = announced.number
        return announced

    def _serve(self, task: WorkerTask, inputs: Inputs, x: bytes) -> None:
        began = self._now()
        if x:  # short enough to have been announced with the run
            inputs = replace(inputs, x=lambda store, task: take_x(decode_array(x), task))
        store, polls, self._polls = RunStore(self._bucket, task.run), self._polls, 0
        one.do(store, task, self._time_left, self._cold, inputs, polls)
        self._cold = False
        self._done = (task.run, task.attempt)
        self._served += 1
        self._longest = max(self._longest, self._now() - began)

    def _stopped(self, store: RunStore, task: WorkerTask) -> bool:
        """Whether the run was stopped; not asked of S3 when the announcement is only just out."""
        now = self._now()
        if now - self._on <= FRESH:
            return False
        self._on = now
        return stop_marker(store, task)

    def _end(self, reason: str) -> dict[str, Any]:
        resident = self._resident
        fields = {"session": resident.session, "worker": resident.worker}
        log.line("ended", reason=reason, served=self._served, **fields)
        return {"state": "ended", "reason": reason, "served": self._served, **fields}
