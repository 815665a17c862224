"""The end of a coordinator's part in a run: bill, report, status, outcome."""

from __future__ import annotations

import math
from collections.abc import Callable

from coordinator import events
from coordinator.context import RunContext
from coordinator.journal import write
from coordinator.meter import MeteredBucket
from coordinator.outcome import Outcome
from coordinator.report import Billing, build_report, error_curve, own_requests, run_cost
from coordinator.report_html import report_page
from coordinator.signals import Finish
from coordinator.state import State

__all__ = ["Later", "at_once", "conclude"]

Later = Callable[[Callable[[], None]], object]


def at_once(record: Callable[[], None]) -> None:
    """Do it now."""
    record()


def conclude(
    context: RunContext,
    state: State,
    finish: Finish,
    bucket: MeteredBucket,
    billing: Billing,
    later: Later = at_once,
) -> Outcome:
    """Write what is left to write, tell the caller, and return what the run came to."""
    exact = finish.state == "exact"
    known, decoding = context.estimate, context.decoding
    usage, bill, bound = run_cost(context, bucket, billing)
    if not exact:  # for the bill of a coordinator that carries on
        used = own_requests(context, bucket, billing)
        context.journal = write(context.store, context.journal, lambda now: now.spending(used))

    def record() -> None:
        if finish.state != "running":
            report = build_report(context, state, finish, usage, bill, bound, billing)
            context.store.put_report(report)
            context.store.put_report(report_page(report, error_curve(context)))
        context.put_status(finish.state, state.attempt, finish.message, bill.to_json())

    later(record)
    error_upper = 0.0 if exact else known.error_upper if known else math.inf
    error = 0.0 if exact else known.error if known else math.inf
    outcome = Outcome(
        run=context.store.run,
        state=finish.state,
        met=finish.met,
        value=decoding.value if exact and decoding else known.value if known else None,
        exact=exact,
        verified=exact and decoding is not None and decoding.verified,
        verification=decoding.verification if decoding else "",
        error=error,
        error_upper=error_upper,
        arrivals=len(context.answers),
        workers=context.manifest.workers,
        subtasks=context.manifest.shares.per_worker,
        missing_rows=() if exact else context.missing_rows,
        seconds=context.elapsed,
        phases=dict(context.phases),
        usage=usage,
        cost=bill.to_json(),
        message=finish.message,
        method=context.method,
        metric=context.metric,
        absolute=known.absolute if known and not exact else None,
        rounding=decoding.error if exact and decoding else None,
        reference=context.journal.spec.reference,
        result_key=context.result_key if exact else context.estimate_key,
        worker_errors=tuple(context.errors),
    )
    context.emit(
        events.Finished,
        error=error,
        state=finish.state,
        met=finish.met,
        error_upper=error_upper,
        message=finish.message,
    )
    return outcome
