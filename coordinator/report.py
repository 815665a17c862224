"""report.json: what a run did and what it is billed for, beside what was planned."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from blockstore.pair_tasks import PairTask
from blockstore.pairs import MatrixPair, Subject
from coordinator.context import RunContext
from coordinator.cost import Cost, Usage, cost
from coordinator.journal import Dispatch, Spent
from coordinator.meter import MeteredBucket
from coordinator.prices import Prices, load_prices
from coordinator.signals import Finish
from coordinator.state import State
from coordinator.stays import Stays

__all__ = ["Billing", "build_report", "error_curve", "own_requests", "run_cost"]

MB_PER_GB = 1024
GB = 1 << 30


@dataclass(frozen=True)
class Billing:
    """What turns seconds into dollars: memory of the functions in MB, prices, and the planned
    figures (`RunPlan.to_json`), None if nobody planned. coordinator_memory_mb is 0 when the
    coordinator does not run on Lambda. concurrency: workers that the account runs at once, 0 if
    that is no matter. stays: of the resident workers that serve the run, None when
    each task is an invocation."""

    worker_memory_mb: int = 1769
    worker_timeout: float = 300.0
    coordinator_memory_mb: int = 0
    prices: Prices = field(default_factory=load_prices)
    planned: Mapping[str, Any] | None = None
    stays: Stays | None = None
    concurrency: int = 0


def run_cost(
    context: RunContext, bucket: MeteredBucket, billing: Billing
) -> tuple[Usage, Cost, float]:
    """(usage, bill, bound) of the run up to now.

    Workers are billed what they say they took. Of a worker that said nothing no more is known than
    a bound: until now, or until its time-out, for every attempt. The usage counts that bound in
    full; the third value is the part of the GB-seconds that is such a bound. Resident workers are
    billed for the time they were alive since the last product of their session. What earlier
    coordinators of the run used is counted if they lived to write it down.
    """
    used = context.journal.spent + own_requests(context, bucket, billing)
    usage = Usage(
        puts=used.puts + len(context.errors),
        gets=used.gets,
        lists=used.lists,
        invokes=used.invokes,
        coordinator_gb_seconds=used.seconds * billing.coordinator_memory_mb / MB_PER_GB,
        transfer_out_gb=used.received / GB,
    )
    usage += context.decode_usage + Usage(
        puts=len(context.answers) // context.manifest.shares.per_object
    )
    if billing.stays is not None:
        alive = billing.stays.settle(context.clock.now(), context.answers.metadata.values())
        usage, bound = usage + alive, 0.0
    else:
        workers, bound = _invocations(context, billing)
        usage += workers
    return usage, cost(usage, billing.prices), bound


def _invocations(context: RunContext, billing: Billing) -> tuple[Usage, float]:
    """(what invoked workers used, the part of the GB-seconds that is a bound)."""
    now, gigabytes = context.clock.now(), billing.worker_memory_mb / MB_PER_GB
    answers, shares = context.answers.metadata, context.manifest.shares
    said = sum(m.seconds_total for m in answers.values())
    invoked = [
        (dispatch, worker) for dispatch in context.journal.dispatches for worker in dispatch.workers
    ]
    bound = sum(
        _unsaid_seconds(context, worker, dispatch, min(now - dispatch.at, billing.worker_timeout))
        for dispatch, worker in invoked
    )
    heard = {(shares.owner(place)[0], m.attempt) for place, m in answers.items()}
    tiles, inputs = _reads(context.manifest)
    usage = Usage(
        gets=len(answers) * tiles + len(heard) * inputs,
        lists=round(sum(m.looks for m in answers.values())),
        invokes=len(invoked),
        worker_gb_seconds=(said + bound) * gigabytes,
    )
    return usage, bound * gigabytes


def _reads(subject: Subject) -> tuple[int, int]:
    """GETs of tiles for each answer, and of x for each invocation."""
    if isinstance(subject, MatrixPair):
        return PairTask.of(subject, run="", attempt=0, worker=0, x_digest="").tiles_read, 0
    return subject.tiling.count, 1


def _unsaid_seconds(context: RunContext, worker: int, dispatch: Dispatch, longest: float) -> float:
    """The most that an invocation took beyond what its answers say; 0 if it gave all of them."""
    answers, shares = context.answers.metadata, context.manifest.shares
    said = [
        answers[place].seconds_total
        for place in shares.places_of(worker)
        if place in answers and answers[place].attempt == dispatch.attempt
    ]
    complete = all(place in answers for place in shares.places_of(worker))
    return 0.0 if said and complete else max(0.0, longest - sum(said))


def own_requests(context: RunContext, bucket: MeteredBucket, billing: Billing) -> Spent:
    """What this coordinator used up to now: time on Lambda if it runs there, bytes that left AWS if
    it does not."""
    on_lambda = billing.coordinator_memory_mb > 0
    return Spent(
        puts=bucket.puts,
        gets=bucket.gets,
        lists=bucket.lists,
        invokes=int(on_lambda),
        seconds=context.clock.now() - context.opened if on_lambda else 0.0,
        received=0 if on_lambda else bucket.received,
    )


def build_report(
    context: RunContext,
    state: State,
    finish: Finish,
    usage: Usage,
    bill: Cost,
    bound: float,
    billing: Billing,
) -> dict[str, Any]:
    """Plain JSON; a figure that is not known is None."""
    began, spec = context.journal.began, context.journal.spec
    exact = finish.state == "exact"
    known = context.estimate
    return {
        "version": 1,
        "run": spec.run,
        "matrix": spec.matrix,
        "right": spec.right,
        "until": spec.until,
        "state": finish.state,
        "met": finish.met,
        "message": finish.message,
        "exact": exact,
        "verified": exact and context.decoding is not None and context.decoding.verified,
        "verification": context.decoding.verification if context.decoding else "",
        "method": context.method,
        "estimator": spec.estimator,
        "metric": spec.metric,
        "relaunch": spec.relaunch,
        "relaunched": sum(len(d.workers) for d in context.journal.dispatches if d.relaunch),
        "reference": spec.reference,
        "rounding": context.decoding.error if exact and context.decoding is not None else None,
        "error": 0.0 if exact else known.error if known else None,
        "error_upper": 0.0 if exact else _finite(known.error_upper) if known else None,
        "arrivals": len(context.answers),
        "workers": context.manifest.workers,
        "subtasks": context.manifest.shares.per_worker,
        "missing_rows": [] if exact else [list(span) for span in context.missing_rows],
        "data_blocks": context.manifest.data_blocks,
        "attempts": state.attempt,
        "seconds": context.elapsed,
        "phases": dict(context.phases),
        "answers": [
            {**_whose(context, place), "arrived": at - began, **_figures(context, place)}
            for place, at in sorted(context.arrived_at.items(), key=lambda item: item[1])
        ],
        "failures": [record.to_json() for record in context.errors],
        "usage": usage.to_json(),
        "bound_gb_seconds": bound,
        "cost": bill.to_json(),
        "planned": dict(billing.planned) if billing.planned is not None else None,
    }


def error_curve(context: RunContext) -> Sequence[tuple[float, int, float]]:
    """(seconds, arrivals, predicted relative error) after every arrival."""
    times = sorted(context.arrived_at.values())
    return [
        (at - context.journal.began, m, context.judge.predicted_error(m))
        for m, at in enumerate(times, 1)
    ]


def _whose(context: RunContext, place: int) -> dict[str, int]:
    shares = context.manifest.shares
    worker, task = shares.owner(place)
    return {"worker": worker} if shares.per_worker == 1 else {"worker": worker, "task": task}


def _figures(context: RunContext, place: int) -> dict[str, Any]:
    figures = asdict(context.answers.metadata[place])
    return {name: value for name, value in figures.items() if name not in ("x_digest", "encoding")}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
