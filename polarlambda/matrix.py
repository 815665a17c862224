"""An encoded matrix: plan a product, or compute it."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from polarlambda.connect import DEPLOYED, Place, function_client, open_bucket, worker_limits
from polarlambda.decoder import planned_decoding, read_memory
from polarlambda.errors import BadInput
from polarlambda.product import Listeners, run_here
from polarlambda.product_deployed import run_deployed
from polarlambda.request import read_request
from polarlambda.settings import Settings
from polarlambda.vectors import read_vector

if TYPE_CHECKING:
    import numpy as np

    from blockstore.bucket import Bucket
    from blockstore.manifest import Manifest
    from coordinator.events import Event
    from coordinator.planning import RunPlan
    from polarcodes import ErasureCode
    from polarlambda.request import Metric
    from polarlambda.result import Arrival, Result
    from polarlambda.session import Mode, Session
    from polarlambda.vectors import Vector

    On = Literal["local", "lambda"]


class CodedMatrix:
    """A matrix A (n, d) whose coded blocks are in a bucket. Open it by name:

    with CodedMatrix.open("photos") as matrix:
        result = matrix.multiply(x)
    """

    def __init__(self, manifest: Manifest, bucket: Bucket, settings: Settings) -> None:
        self.manifest = manifest
        self._bucket = bucket
        self._settings = settings

    @classmethod
    def open(
        cls,
        name: str,
        *,
        stack: str | None = None,
        bucket: str | None = None,
        worker: str | None = None,
        coordinator: str | None = None,
    ) -> CodedMatrix:
        """Read the manifest of ``name``.

        The bucket and the functions are the ones given, those of a CloudFormation stack, or those
        in the environment (`polarlambda.settings`). Raises `NameRefused`, `SettingMissing`,
        `MatrixMissing`, `StoreError`. Cost: two requests.
        """
        from blockstore.keys import validate_name
        from blockstore.manifest import load_manifest

        validate_name(name)
        settings = Place(stack, bucket, worker, coordinator).settings()
        opened = open_bucket(settings, pool=64)
        return cls(load_manifest(opened, name), opened, settings)

    def close(self) -> None:
        """Close the connections."""
        self._bucket.client.close()

    def __enter__(self) -> CodedMatrix:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"CodedMatrix({self.manifest.name!r}, shape={self.shape}, dtype={self.dtype})"

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d) of the matrix that was encoded."""
        return self.manifest.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """dtype of the matrix that was encoded."""
        import numpy as np

        return np.dtype(self.manifest.source_dtype)

    @property
    def code(self) -> ErasureCode:
        """The erasure code, rebuilt from the manifest."""
        from polarcodes import code_from_manifest

        return code_from_manifest(self.manifest.code)

    def plan(
        self,
        x: Vector | None = None,
        *,
        x_columns: int = 1,
        x_dtype: str = "float64",
        delays: str = "lambda-rare-tail",
        worker_memory_mb: int | None = None,
        on: On = "local",
        decode: On = "local",
        result: Literal["npy", "zarr"] = "npy",
        coordinator_memory: int | str | None = None,
        concurrency: int | None = None,
        prices: str | os.PathLike[str] | None = None,
        region: str | None = None,
    ) -> RunPlan:
        """What a product with ``x``, or with one of ``x_columns`` columns, will need and cost.

        ``decode`` and ``result`` are those of `multiply`; ``coordinator_memory`` is its ``memory``,
        or with ``on="lambda"`` that of the coordinator function (2,048 MB if not given).

        Memory and time limit are those of the deployed worker when the settings name one, prices
        those of its region unless ``prices`` (a file, docs/cost.md) or ``region`` say otherwise;
        ``concurrency`` is the account's, 1,000 if not given. Writes nothing, invokes nothing.
        Raises `BadInput`, `PlanRefused` (it names the number to change).
        """
        from coordinator.planning import plan_multiply
        from polarlambda.planning import assumed, delay_model, price_list

        shape: tuple[int, ...] = (self.shape[1], x_columns)
        if x is not None:
            array = read_vector(x, self.manifest)
            shape, x_dtype = array.shape, array.dtype.str
        limits, chosen = DEPLOYED, prices is not None or region is not None
        if self._settings.worker:
            limits = worker_limits(function_client(), self._settings.worker)
        function_mb = None
        if decode == "lambda" and self._settings.decode:
            function_mb = worker_limits(function_client(), self._settings.decode).memory_mb
        wish, coordinator_mb = planned_decoding(decode, result, coordinator_memory, on, function_mb)
        return plan_multiply(
            self.manifest,
            shape,
            x_dtype,
            worker_memory_mb=worker_memory_mb or limits.memory_mb,
            worker_timeout=limits.timeout,
            on=on,
            coordinator_memory_mb=coordinator_mb,
            wish=wish,
            prices=price_list(prices, region, limits.architecture) if chosen else limits.prices,
            delays=delay_model(delays),
            platform=assumed(concurrency),
        )

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
        on: On = "local",
        decode: On = "local",
        result: Literal["npy", "zarr"] = "npy",
        memory: int | str | None = None,
        on_arrival: Callable[[Arrival], None] | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> Result:
        """Compute A x on the worker function.

        Parameters
        ----------
        x : (d,), (d, 1) or (d, k) array or nested lists, or the path of an .npy file; bool, any
            integer, float16/32/64; finite
        until : "exact", "error=0.1" (predicted relative rms error), "seconds=5", or "tasks=0.95"
            (this share of the rows exactly, the others zero and named in the result)
        deadline : seconds after which the best estimate is returned; default: the worker's time
            limit plus 30 s after the last invocation
        estimator : which estimate stands in for A x before it is exact: "best" (the least predicted
            error), "paper" (the unbiased one), "shrinkage", "least-squares" or "hybrid"
        metric : what its errors are errors of, and "best" makes least: "vector", A x relative to
            its norm; or vectors C, (n,) or (n, p), an array or the path of an .npy file: inner
            products C^T A x, relative to ||C|| ||A x||. The result then has them (`products`)
        relaunch : invoke slow workers once more: "share=0.9" (this share of the answers is here),
            "times=3" (asked longer ago than 3 times the median answer time) or both with a comma.
            The first answer wins. For any code, "uncoded" above all
        reference : the id or the Result of an exact product of this matrix by an x_ref of the same
            shape, for iterations: the workers multiply by x - x_ref (in float64), and A x_ref is
            added, so that an estimate's error scales with the step. All errors are still relative
            to A x, by the norm of the estimate, and rows that "tasks=0.95" ends without hold those
            of A x_ref. The value is float64. An exact one adds its own rounding to that of A x_ref
            (`Result.rounding` bounds the sum)
        on : "local" runs the coordinator in this process, "lambda" in the deployed function
        decode : "lambda" has the deployed decode functions make the product, each a range of its
            columns; "local" the coordinator (docs/large-results.md)
        result : what the product is written as in the bucket: "npy", or "zarr", a Zarr v3 array
        memory : bytes, or "500MB", that the coordinator in this process may use. Answers and a
            product that do not fit stay in the bucket: `Result.value` is read when it is looked at,
            `Result.download` writes it to a file within a few megabytes
        on_arrival : called with an `Arrival` as answers come in, from this thread (on="local") or
            another one (on="lambda")
        on_event : called with the coordinator's typed events (`coordinator.events`); on="local"

        Returns a `Result`; its value is (n,) for x of shape (d,), else (n, k).

        Raises, before anything is written or invoked: `BadInput`, `InputRefused`, `UntilRefused`,
        `RelaunchRefused`, `PlanRefused`, `SettingMissing`, `FunctionMissing`, `StoreError`. Ctrl-C
        ends the run: workers that have not begun do not begin, `resume_run` can go on with it. With
        on="local" its estimate is returned, in state "stopped". What on_arrival or on_event raises
        ends the run the same way, and is raised.
        """
        request = read_request(
            self.manifest,
            x,
            until=until,
            deadline=deadline,
            estimator=estimator,
            metric=metric,
            relaunch=relaunch,
            reference=reference,
            decode=decode,
            result=result,
        )
        if on not in ("local", "lambda"):
            raise BadInput(f'on must be "local" or "lambda", got {on!r}')
        listeners = Listeners(on_arrival, on_event)
        parts = self.manifest, self._bucket, self._settings, request, listeners
        if on == "local":
            return request.completed(run_here(*parts, memory=read_memory(memory)))
        if memory is not None:
            raise BadInput("memory is the function's own with on='lambda': leave it out")
        return request.completed(run_deployed(*parts))

    def session(self, mode: Mode = "invoke", *, idle_limit: float = 30.0) -> Session:
        """A series of products on this matrix; close it, or use it as a context manager.

        mode : "invoke", one invocation per worker and product; "resident", workers that stay, keep
            their blocks in memory and are told of each product through S3. `Session.plan` says
            which is cheaper; residents are the faster ones
        idle_limit : seconds without a product after which residents end (the next product invokes
            them again), so that a coordinator that died is not billed for long

        Raises `BadInput`, `SettingMissing`, `FunctionMissing`, `InvokeDenied`.
        """
        from polarlambda.session import Session

        return Session(self.manifest, self._bucket, self._settings, mode, idle_limit)
