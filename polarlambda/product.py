"""One product, by the coordinator in this process or by the deployed one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from polarlambda.connect import function_client, worker_limits
from polarlambda.deployed import StatusWatcher, call_coordinator, check_coordinator
from polarlambda.result import Arrival, Result, finite
from polarlambda.settings import Settings

if TYPE_CHECKING:
    import numpy as np

    from blockstore.bucket import Bucket
    from blockstore.manifest import Manifest
    from coordinator.events import Event
    from coordinator.invoker import LambdaInvoker
    from coordinator.outcome import Outcome
    from coordinator.report import Billing

INVOKE_THREADS = 32


@dataclass(frozen=True)
class Listeners:
    """Who is told how a run goes: see `CodedMatrix.multiply`."""

    on_arrival: Callable[[Arrival], None] | None = None
    on_event: Callable[[Event], None] | None = None

    def hear(self, event: Event) -> None:
        """Pass an event of the coordinator on."""
        if self.on_event is not None:
            self.on_event(event)
        if self.on_arrival is not None and (arrival := _arrival(event)) is not None:
            self.on_arrival(arrival)


def run_here(
    manifest: Manifest,
    bucket: Bucket,
    settings: Settings,
    x: np.ndarray[Any, Any],
    *,
    until: str,
    deadline: float | None,
    listeners: Listeners,
) -> Result:
    """Run the coordinator in this process; see `CodedMatrix.multiply`."""
    from coordinator.run import start_run

    invoker, billing = _worker(settings, manifest, x.shape, x.dtype)
    outcome = start_run(
        bucket,
        manifest,
        x,
        until=until,
        deadline=deadline,
        invoker=invoker,
        on_event=listeners.hear,
        billing=billing,
    )
    return _result(outcome)


def resume_here(bucket: Bucket, settings: Settings, run: str, listeners: Listeners) -> Result:
    """Go on with a run in this process; see `polarlambda.runs.resume_run`."""
    import numpy as np

    from blockstore.manifest import load_manifest
    from blockstore.runs import RunStore
    from coordinator.run import resume_run

    spec = RunStore(bucket, run).load_spec()
    manifest = load_manifest(bucket, spec.matrix)
    invoker, billing = _worker(settings, manifest, spec.x_shape, np.dtype(spec.x_dtype))
    outcome = resume_run(bucket, run, invoker=invoker, on_event=listeners.hear, billing=billing)
    return _result(outcome)


def run_deployed(
    manifest: Manifest,
    bucket: Bucket,
    settings: Settings,
    x: np.ndarray[Any, Any],
    *,
    until: str,
    deadline: float | None,
    listeners: Listeners,
) -> Result:
    """Upload x and have the deployed coordinator run the product; read the value by its key."""
    from blockstore.keys import new_run_id, x_key
    from blockstore.runs import RunStore

    function = settings.need("coordinator")
    client = function_client()
    check_coordinator(client, function)
    run = new_run_id(int(time.time() * 1000), os.urandom(10))
    RunStore(bucket, run).save_x(x)
    event = {
        "version": 1,
        "matrix": manifest.name,
        "x": x_key(run),
        "until": until,
        "deadline": deadline,
        "run": run,
    }
    return _await_deployed(bucket, client, function, run, event, listeners)


def resume_deployed(bucket: Bucket, settings: Settings, run: str, listeners: Listeners) -> Result:
    """Have the deployed coordinator go on with a run; see `polarlambda.runs.resume_run`."""
    from blockstore.runs import RunStore

    function = settings.need("coordinator")
    RunStore(bucket, run).load_spec()
    client = function_client()
    event = {"version": 1, "resume": run}
    return _await_deployed(bucket, client, function, run, event, listeners)


def _await_deployed(
    bucket: Bucket,
    client: Any,
    function: str,
    run: str,
    event: dict[str, Any],
    listeners: Listeners,
) -> Result:
    from blockstore.arrays import get_array
    from coordinator.run import cancel_run

    try:
        with StatusWatcher(bucket, run, listeners.on_arrival):
            answer = call_coordinator(client, function, event)
    except KeyboardInterrupt:  # it would go on without us, at our cost
        cancel_run(bucket, run)
        return _interrupted(bucket, run)
    key = answer.get("result")
    return Result(
        run=answer["run"],
        state=answer["state"],
        value=get_array(bucket, key) if key else None,
        exact=answer["exact"],
        verified=answer["verified"],
        met=answer["met"],
        arrivals=answer["arrivals"],
        workers=answer["workers"],
        error=answer["error"],
        error_upper=answer["error_upper"],
        seconds=answer["seconds"],
        cost=answer["cost"]["total"] if answer["cost"] else None,
        bill=answer["cost"],
        message=answer["message"],
    )


def _interrupted(bucket: Bucket, run: str) -> Result:
    """What the deployed coordinator had published when it was told to stop."""
    from blockstore.errors import ObjectMissing
    from blockstore.runs import RunStore

    store = RunStore(bucket, run)
    status = store.get_status()
    try:
        value = store.get_estimate()
    except ObjectMissing:
        value = None
    return Result(
        run=run,
        state=status.state,
        value=value,
        exact=False,
        verified=False,
        met=False,
        arrivals=status.arrivals,
        workers=status.workers,
        error=status.error,
        error_upper=status.error_upper,
        seconds=status.seconds,
        cost=None,
        bill=None,
        message=status.message,
    )


def _worker(
    settings: Settings, manifest: Manifest, x_shape: tuple[int, ...], x_dtype: np.dtype[Any]
) -> tuple[LambdaInvoker, Billing]:
    """The deployed worker, checked to be there, and a plan that says that the product fits it.

    Raises `SettingMissing`, `FunctionMissing`, `InvokeDenied`, `PlanRefused`.
    """
    from coordinator.invoker import LambdaInvoker, lambda_client
    from coordinator.planning import plan_multiply
    from coordinator.report import Billing

    function = settings.need("worker")
    client = lambda_client(pool=INVOKE_THREADS)
    invoker = LambdaInvoker(client, function, threads=INVOKE_THREADS)
    invoker.check()
    limits = worker_limits(client, function)
    plan = plan_multiply(
        manifest,
        x_shape,
        x_dtype,
        worker_memory_mb=limits.memory_mb,
        worker_timeout=limits.timeout,
        prices=limits.prices,
    )
    billing = Billing(
        worker_memory_mb=limits.memory_mb,
        worker_timeout=limits.timeout,
        prices=limits.prices,
        planned=plan.to_json(),
    )
    return invoker, billing


def _result(outcome: Outcome) -> Result:
    return Result(
        run=outcome.run,
        state=outcome.state,
        value=outcome.value,
        exact=outcome.exact,
        verified=outcome.verified,
        met=outcome.met,
        arrivals=outcome.arrivals,
        workers=outcome.workers,
        error=finite(outcome.error),
        error_upper=finite(outcome.error_upper),
        seconds=outcome.seconds,
        cost=outcome.cost["total"] if outcome.cost else None,
        bill=outcome.cost,
        message=outcome.message,
    )


def _arrival(event: Event) -> Arrival | None:
    """What `on_arrival` is told of an event; None for events that bring no news of the answers."""
    from coordinator import events

    estimate = upper = None
    state = "running"
    match event:
        case events.Estimated():
            estimate, upper = event.value, finite(event.error_upper)
        case events.Decodable():
            state = "decodable"
        case events.Decoded():
            state = "exact"
        case events.Arrived():
            pass
        case _:
            return None
    return Arrival(
        run=event.run,
        seconds=event.t,
        arrivals=event.arrivals,
        workers=event.workers,
        error=finite(event.error),
        error_upper=upper,
        state=state,
        estimate=estimate,
    )
