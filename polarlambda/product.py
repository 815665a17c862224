"""One product, by the coordinator in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from polarlambda.decoder import decode_options, stored_value
from polarlambda.result import Arrival, Result, finite
from polarlambda.settings import Settings
from polarlambda.worker import DeployedWorker

if TYPE_CHECKING:
    import numpy as np

    from blockstore.bucket import Bucket
    from blockstore.manifest import Manifest
    from blockstore.products import StoredProduct
    from coordinator.events import Event
    from coordinator.outcome import Outcome
    from polarlambda.request import Request


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
    request: Request,
    listeners: Listeners,
    memory: int | None = None,
) -> Result:
    """Run the coordinator in this process; see `CodedMatrix.multiply`."""
    from coordinator.decode_options import decode_wish
    from coordinator.run import start_run

    worker = DeployedWorker.find(settings)
    options = decode_options(settings, request.decode, memory)
    wish = decode_wish(request.decode, request.result, options)
    outcome = start_run(
        bucket,
        manifest,
        request.x,
        invoker=worker.invoker(),
        on_event=listeners.hear,
        billing=worker.billing(manifest, request.x.shape, request.sent_dtype, wish),
        options=options,
        **request.options,
    )
    return to_result(outcome, bucket)


def resume_here(
    bucket: Bucket, settings: Settings, run: str, listeners: Listeners, memory: int | None = None
) -> Result:
    """Go on with a run in this process; see `polarlambda.runs.resume_run`."""
    from blockstore.pairs import load_subject
    from blockstore.runs import RunStore
    from coordinator.run import resume_run

    spec = RunStore(bucket, run).load_spec()
    subject = load_subject(bucket, spec)
    worker = DeployedWorker.find(settings)
    options = decode_options(settings, spec.decode, memory)
    outcome = resume_run(
        bucket,
        run,
        invoker=worker.invoker(),
        on_event=listeners.hear,
        billing=worker.subject_billing(subject, spec, options),
        options=options,
    )
    return to_result(outcome, bucket)


def to_result(outcome: Outcome, bucket: Bucket) -> Result:
    """What the caller of a product gets of a run's outcome; a value that was left in the bucket is
    read when it is looked at."""
    value: np.ndarray[Any, Any] | StoredProduct | None = outcome.value
    if value is None and outcome.result_key is not None:
        value = stored_value(bucket, outcome.result_key)
    return Result(
        run=outcome.run,
        state=outcome.state,
        value=value,
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
