"""A series of products on one matrix: what one product leaves ready serves the next."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from polarlambda.errors import BadInput
from polarlambda.product import Listeners, to_result
from polarlambda.request import read_request
from polarlambda.session_usage import SessionUsage
from polarlambda.worker import DeployedWorker

if TYPE_CHECKING:
    from blockstore.bucket import Bucket
    from blockstore.manifest import Manifest
    from coordinator.events import Event
    from coordinator.outcome import Outcome
    from polarlambda.request import Metric
    from polarlambda.result import Arrival, Result
    from polarlambda.settings import Settings
    from polarlambda.vectors import Vector

FASTEST = 0.02  # seconds between two looks for answers: in a series every product's wait counts


class Session:
    """Made by `CodedMatrix.session`; a context manager.

    with matrix.session() as session:
        for _ in range(100):
            x = step(session.multiply(x).value)

    Every product is a run like any other, with its id, its objects and its report: it can be
    watched, resumed and shown. One product at a time; not for several threads.
    """

    def __init__(self, manifest: Manifest, bucket: Bucket, settings: Settings) -> None:
        from coordinator.cost import Usage

        self.manifest = manifest
        self._bucket = bucket
        self._worker = DeployedWorker.find(settings)
        self._products = self._bytes_read = self._bytes_written = 0
        self._used = Usage()
        self._closed = False

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
        on_event: Callable[[Event], None] | None = None,
    ) -> Result:
        """Compute A x; every argument, the `Result` and the errors are those of
        `CodedMatrix.multiply`. Raises `BadInput` once the session is closed.
        """
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
        shape, sent = request.x.shape, request.sent_dtype
        outcome = start_run(
            self._bucket,
            self.manifest,
            request.x,
            invoker=self._worker.invoker(),
            on_event=Listeners(on_arrival, on_event).hear,
            billing=self._worker.billing(self.manifest, shape, sent),
            fastest=FASTEST,
            **request.options,
        )
        self._count(outcome, shape, sent)
        return request.completed(to_result(outcome, self._bucket))

    @property
    def usage(self) -> SessionUsage:
        """What the products so far have used: requests, bytes, GB-seconds, dollars."""
        from coordinator.cost import cost

        return SessionUsage(
            products=self._products,
            usage=self._used,
            bytes_read=self._bytes_read,
            bytes_written=self._bytes_written,
            cost=cost(self._used, self._worker.limits.prices),
        )

    def close(self) -> None:
        """End the session. May be called again."""
        if not self._closed:
            self._closed = True
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

    def _count(self, outcome: Outcome, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        """Add a product to the totals: each of N workers has read its blocks and x."""
        from blockstore.tasks import compute_dtype

        manifest, columns = self.manifest, prod(shape[1:])
        entries = manifest.shares.per_worker * manifest.block_rows * manifest.columns
        block = entries * np.dtype(manifest.dtype).itemsize
        answer = manifest.block_rows * columns * compute_dtype(manifest.dtype, dtype).itemsize
        self._products += 1
        self._used += outcome.usage
        self._bytes_read += manifest.workers * (block + prod(shape) * dtype.itemsize)
        self._bytes_written += outcome.arrivals * answer
