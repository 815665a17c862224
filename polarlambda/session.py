"""A series of products on one matrix: what one product leaves ready serves the next."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from polarlambda.errors import BadInput
from polarlambda.product import Listeners, to_result
from polarlambda.request import read_request
from polarlambda.session_usage import SessionUsage, Tally
from polarlambda.worker import DeployedWorker

if TYPE_CHECKING:
    from blockstore.bucket import Bucket
    from blockstore.manifest import Manifest
    from coordinator.events import Event as RunEvent
    from coordinator.planning import SeriesPlan
    from coordinator.residents import Residents
    from polarlambda.request import Metric
    from polarlambda.result import Arrival, Result
    from polarlambda.settings import Settings
    from polarlambda.vectors import Vector

    Mode = Literal["resident", "invoke"]

FASTEST = 0.02  # seconds between two looks for answers: in a series every product's wait counts
PAUSE = 0.1  # seconds after a product in which the next one is expected, and goes first
IDLE_LIMIT = 30.0
LEAST_IDLE_LIMIT = 1.0


class Session:
    """Made by `CodedMatrix.session`; a context manager.

    with matrix.session(mode="resident") as session:
        for _ in range(100):
            x = step(session.multiply(x).value)

    Every product is a run like any other, with its id, its objects and its report: it can be
    watched, resumed and shown. One product at a time; not for several threads. `id` names the
    session's announcements in the bucket.
    """

    def __init__(
        self,
        manifest: Manifest,
        bucket: Bucket,
        settings: Settings,
        mode: Mode = "invoke",
        idle_limit: float = IDLE_LIMIT,
    ) -> None:
        from blockstore.keys import new_run_id
        from coordinator.ports import SystemClock

        if mode not in ("resident", "invoke"):
            raise BadInput(f'mode must be "resident" or "invoke", got {mode!r}')
        if not (LEAST_IDLE_LIMIT <= idle_limit < math.inf):
            raise BadInput(
                f"idle_limit must be {LEAST_IDLE_LIMIT:g} s or more and finite, got {idle_limit!r}"
            )
        self.manifest = manifest
        self.mode = mode
        self._bucket = bucket
        self._worker = DeployedWorker.find(settings)
        self._clock = SystemClock()
        self._idle_limit = idle_limit
        self._tally = Tally(manifest, resident=mode == "resident")
        self._residents: Residents | None = None
        self._recorder = ThreadPoolExecutor(1, thread_name_prefix="record")
        self._recording: Future[None] | None = None
        self._under_way = Event()  # the next product: its workers have been asked
        self._closed = False
        self.id = new_run_id(int(self._clock.now() * 1000), os.urandom(10))

    def multiply(
        self,
        x: Vector,
        *,
        until: str = "exact",
        deadline: float | None = None,
        estimator: str = "best",
        metric: Metric = "vector",
        relaunch: str | float | None = None,
        reference: str | Result | None = None,
        on_arrival: Callable[[Arrival], None] | None = None,
        on_event: Callable[[RunEvent], None] | None = None,
    ) -> Result:
        """Compute A x; the arguments, the `Result` and the errors are those of
        `CodedMatrix.multiply`, whose on, decode, result and memory a series lacks. Raises
        `BadInput` once the session is closed, and `PlanRefused` if resident workers cannot all
        stay, or not keep their blocks in memory.
        """
        from dataclasses import replace

        from coordinator.events import Dispatched
        from coordinator.run import start_run

        if self._closed:
            raise BadInput("this session is closed: open another one with CodedMatrix.session()")
        request = read_request(
            self.manifest,
            x,
            until=until,
            deadline=deadline,
            estimator=estimator,
            metric=metric,
            relaunch=relaunch,
            reference=reference,
        )
        if reference is not None or (self._recording is not None and self._recording.done()):
            self._recorded()
        shape, sent = request.x.shape, request.sent_dtype
        billing = self._worker.billing(self.manifest, shape, sent)
        residents = self._with_residents(shape, sent) if self.mode == "resident" else None
        if residents is not None:  # all at a time, for as long as they are needed
            billing = replace(billing, stays=residents.stays, concurrency=0)
            residents.expect(request.x)
        listeners = Listeners(on_arrival, on_event)

        def hear(event: RunEvent) -> None:
            if residents is not None:
                residents.hear(event)
            if isinstance(event, Dispatched):
                self._under_way.set()
            listeners.hear(event)

        outcome = start_run(
            self._bucket,
            self.manifest,
            request.x,
            invoker=residents or self._worker.invoker(),
            on_event=hear,
            billing=billing,
            clock=self._clock,
            fastest=FASTEST,
            later=self._record,
            **request.options,
        )
        self._tally.add(outcome, shape, sent)
        return request.completed(to_result(outcome, self._bucket))

    def plan(self, x_columns: int = 1, x_dtype: str = "float64") -> SeriesPlan:
        """Time and dollars of a product in both modes, and the gap between products up to which
        residents are cheaper. Raises `PlanRefused`."""
        shape = (self.manifest.columns, x_columns) if x_columns != 1 else (self.manifest.columns,)
        return self._worker.series_plan(self.manifest, shape, np.dtype(x_dtype))

    @property
    def usage(self) -> SessionUsage:
        """What the session has used so far: requests, bytes, GB-seconds, dollars. Residents count
        for all the time that they were alive, up to now."""
        residents = self._residents
        alive = None if residents is None else residents.stays.usage(self._clock.now())
        invoked = 0 if residents is None else residents.stays.invocations
        return self._tally.total(self._worker.limits.prices, alive, invoked)

    def close(self) -> None:
        """End the session: residents go. May be called again."""
        if self._closed:
            return
        self._closed = True
        try:
            if self._residents is not None:
                self._residents.end()
            self._recorded()
        finally:
            self._recorder.shutdown()
            self._worker.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _record(self, record: Callable[[], None]) -> None:
        """Write the report of a product that has ended while the caller computes, or while workers
        do if the next product begins at once."""

        def in_time() -> None:
            self._under_way.wait(PAUSE)
            record()

        try:
            self._recorded()  # the report of the product before
        finally:
            self._under_way.clear()
            self._recording = self._recorder.submit(in_time)

    def _recorded(self) -> None:
        """Wait for it; raises what went wrong there."""
        self._under_way.set()
        recording, self._recording = self._recording, None
        if recording is not None:
            recording.result()

    def _with_residents(self, x_shape: tuple[int, ...], x_dtype: np.dtype[Any]) -> Residents:
        """The session's residents, which can hold their blocks and this x."""
        from coordinator.residents import Residents
        from coordinator.stays import Stays

        plan = self._worker.series_plan(self.manifest, x_shape, x_dtype)
        self._worker.check_resident(self.manifest, plan)
        if self._residents is None:
            limits, shares = self._worker.limits, self.manifest.shares
            tiles = shares.per_worker * self.manifest.tiling.count
            self._residents = Residents(
                self._bucket,
                self.id,
                self.manifest.workers,
                self._worker.direct_invoker(),
                self._clock,
                stays=Stays(limits.memory_mb, limits.timeout, tiles),
                timeout=limits.timeout,
                idle_limit=self._idle_limit,
                cold_seconds=plan.invoke_seconds,
            )
        return self._residents
