"""One product, by the coordinator in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from polarlambda.connect import worker_limits
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
    estimator: str,
    metric: str,
    relaunch: str | None,
    reference: str | None,
    listeners: Listeners,
) -> Result:
    """Run the coordinator in this process; see `CodedMatrix.multiply`."""
    from coordinator.reference import DTYPE
    from coordinator.run import start_run

    sent = x.dtype if reference is None else DTYPE
    invoker, billing = _worker(settings, manifest, x.shape, sent)
    outcome = start_run(
        bucket,
        manifest,
        x,
        until=until,
        deadline=deadline,
        estimator=estimator,
        metric=metric,
        relaunch=relaunch,
        reference=reference,
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


def _worker(
    settings: Settings, manifest: Manifest, x_shape: tuple[int, ...], x_dtype: np.dtype[Any]
) -> tuple[LambdaInvoker, Billing]:
    """The deployed worker, checked to be there, and a plan that says that the product fits it.

    Raises `SettingMissing`, `FunctionMissing`, `InvokeDenied`, `PlanRefused`.
    """
    from coordinator.invoker import LambdaInvoker, lambda_client
    from coordinator.planning import QUICK_ROUNDS, plan_multiply
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
        rounds=QUICK_ROUNDS,
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
        subtasks=outcome.subtasks,
        missing_rows=outcome.missing_rows,
        error=finite(outcome.error),
        error_upper=finite(outcome.error_upper),
        seconds=outcome.seconds,
        cost=outcome.cost["total"] if outcome.cost else None,
        bill=outcome.cost,
        message=outcome.message,
        method=outcome.method,
        metric=outcome.metric,
        absolute=outcome.absolute,
        rounding=outcome.rounding,
        reference=outcome.reference,
        verification=outcome.verification,
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
        subtasks=event.subtasks,
        error=finite(event.error),
        metric=event.metric,
        error_upper=upper,
        state=state,
        estimate=estimate,
    )
