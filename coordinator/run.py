"""Start, resume and cancel runs: the same code in the command and in the coordinator function."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from blockstore import keys
from blockstore.arrays import array_digest
from blockstore.bucket import Bucket
from blockstore.errors import ObjectMissing
from blockstore.manifest import Manifest, load_manifest
from blockstore.records import RunSpec, RunStatus
from blockstore.runs import RunStore
from coordinator import events
from coordinator.answers import Answers
from coordinator.collect import THREADS, Collector
from coordinator.context import RunContext
from coordinator.dispatch import Dispatcher
from coordinator.estimate import check_estimator
from coordinator.events import Event
from coordinator.finished import load_finished
from coordinator.form import AnswerForm
from coordinator.inputs import InputRefused, MatrixReplaced, check_deadline, check_x
from coordinator.journal import Journal, load_journal, timestamp, update
from coordinator.loop import RunLoop
from coordinator.meter import MeteredBucket
from coordinator.outcome import Outcome
from coordinator.performer import Performer
from coordinator.ports import Clock, Invoker, SystemClock
from coordinator.report import Billing, build_report, error_curve, own_requests, run_cost
from coordinator.report_html import report_page
from coordinator.restore import restore_tasks, stop_markers
from coordinator.signals import Finish
from coordinator.state import Rules, State, initial_state
from coordinator.until import Until, parse_until
from polarcodes import code_from_manifest

__all__ = ["cancel_run", "resume_run", "start_run"]

FINAL = ("exact", "estimated", "failed", "cancelled", "stopped")


def start_run(
    bucket: Bucket,
    manifest: Manifest,
    x: NDArray[Any],
    *,
    invoker: Invoker,
    until: str | Until = "exact",
    deadline: float | None = None,
    estimator: str = "best",
    on_event: Callable[[Event], None] | None = None,
    run: str | None = None,
    clock: Clock | None = None,
    billing: Billing | None = None,
    time_left: Callable[[], float] | None = None,
    threads: int = THREADS,
) -> Outcome:
    """Multiply: invoke the workers, publish estimates, decode, write result and report.

    Parameters
    ----------
    x : (d,) or (d, k), real and finite
    until : "exact", "error=0.1", "seconds=5" or "tasks=0.95"
    deadline : seconds from now; by default the worker's time-out and 30 s after the last invocation
    estimator : which estimate is published and returned (`coordinator.estimate.check_estimator`)
    run : id to use (`blockstore.keys.new_run_id`); drawn if None
    billing : memory, time-out and prices of the worker function, and the planned figures
    time_left : seconds until the platform ends this process: near it the run is handed over

    Returns the outcome, also of a run that did not reach what was asked (`Outcome.met`).

    Raises
    ------
    InputRefused, UntilRefused, NameRefused, InvokeError : before anything is written or invoked
    StoreError : the coordinator's own access to the store fails; the run can be resumed
    Anything that on_event raises, after the run was ended as by Ctrl-C: it can be resumed
    """
    asked = parse_until(until)
    limit = check_deadline(deadline)
    vector = check_x(x, manifest)
    clock = clock or SystemClock()
    now = clock.now()
    run = keys.validate_run(run) if run else keys.new_run_id(int(now * 1000), os.urandom(10))
    check_estimator(code_from_manifest(manifest.code), estimator)  # and the code can be made
    invoker.check()
    spec = RunSpec(
        run=run,
        created=timestamp(now),
        matrix=manifest.name,
        manifest_digest=manifest.digest,
        encoding=manifest.encoding,
        workers=manifest.workers,
        subtasks=manifest.shares.per_worker,
        x_shape=vector.shape,
        x_dtype=vector.dtype.str,
        x_digest=array_digest(vector),
        until=str(asked),
        deadline=limit,
        estimator=estimator,
    )
    metered = MeteredBucket(bucket)
    store = RunStore(metered, run)
    taken = f"run {run} has begun already: resume it, or leave the id out to start another one"
    if metered.head(keys.run_key(run)) is not None:
        raise InputRefused(taken)
    store.save_x(vector)
    journal = Journal(spec)
    if not journal.create(store):  # an event delivered twice starts one run
        raise InputRefused(taken)
    return _carry(metered, manifest, journal, invoker, clock, on_event, billing, time_left, threads)


def resume_run(
    bucket: Bucket,
    run: str,
    *,
    invoker: Invoker,
    on_event: Callable[[Event], None] | None = None,
    clock: Clock | None = None,
    billing: Billing | None = None,
    time_left: Callable[[], float] | None = None,
    threads: int = THREADS,
) -> Outcome:
    """Carry on with a run whose coordinator died, was stopped, or handed it over.

    A run that is exact is not computed again: what is stored is returned. With a decisive set
    stored, only decodes: the same bytes. Else takes in the answers that are
    there, waits for workers that still run, and invokes those that were never invoked, died or
    failed, with the next attempt number. A deadline (or `seconds=T`) that has passed counts anew.

    Raises `ObjectMissing` for no such run, `MatrixReplaced` if the matrix was encoded anew since,
    and what `start_run` raises.
    """
    metered = MeteredBucket(bucket)
    store = RunStore(metered, run)
    journal = load_journal(store)
    manifest = load_manifest(metered, journal.spec.matrix)
    if manifest.digest != journal.spec.manifest_digest:
        raise MatrixReplaced(
            f"matrix {manifest.name!r} was encoded again since run {run} began: start a new run"
        )
    if journal.spec.decisive is None:
        invoker.check()
    elif (finished := load_finished(store)) is not None:
        return finished
    clock = clock or SystemClock()
    return _carry(metered, manifest, journal, invoker, clock, on_event, billing, time_left, threads)


def cancel_run(bucket: Bucket, run: str) -> RunStatus:
    """Tell the workers not to start and the coordinator to end; the estimate is kept.

    Returns the status then. A run that has ended stays as it is, and so does its status. Raises
    `ObjectMissing` for no such run.
    """
    store = RunStore(bucket, run)
    spec = store.load_spec()
    try:
        status = store.get_status()
    except ObjectMissing:
        status = RunStatus(
            run=run, state="planned", arrivals=0, workers=spec.workers, subtasks=spec.subtasks
        )
    if status.state in FINAL:
        return status
    for attempt in range(1, spec.attempt + 1):
        store.put_stop(attempt)
    message = "the run was cancelled on request"
    status = replace(status, state="cancelled", message=message)
    store.put_status(status)
    return status


def _carry(
    bucket: MeteredBucket,
    manifest: Manifest,
    journal: Journal,
    invoker: Invoker,
    clock: Clock,
    on_event: Callable[[Event], None] | None,
    billing: Billing | None,
    time_left: Callable[[], float] | None,
    threads: int,
) -> Outcome:
    """Put the parts together, run the loop, write status and report."""
    billing = billing or Billing()
    spec, store = journal.spec, RunStore(bucket, journal.spec.run)
    answers = Answers(AnswerForm.of(manifest, spec.x_shape, spec.x_dtype))
    code = code_from_manifest(manifest.code)
    context = RunContext(manifest, code, store, answers, clock, journal, on_event)
    stops = stop_markers(store) if journal.dispatches else frozenset()
    state = initial_state(
        context.judge,
        rules := Rules(parse_until(spec.until), billing.worker_timeout, spec.deadline),
        _opening(journal, rules, clock.now()),
        tasks=restore_tasks(journal, stops),
        attempt=max([0, *stops, *(d.attempt for d in journal.dispatches)]),
        decisive=spec.decisive,
        shares=manifest.subtasks,
        recovered=context.recovered.share,
    )
    collector = Collector(
        store,
        answers.form,
        x_digest=spec.x_digest,
        encoding=spec.encoding,
        workers=manifest.workers,
        clock=clock,
        threads=threads,
    )
    dispatcher = Dispatcher(context, invoker)
    performer = Performer(context, dispatcher, stops)
    loop = RunLoop(context, state, collector, dispatcher, performer, time_left)
    finish = loop.run()
    outcome = _conclude(context, loop.state, finish, bucket, billing)
    if context.listener_failure is not None:
        raise context.listener_failure
    return outcome


def _opening(journal: Journal, rules: Rules, now: float) -> float:
    """When the time allowed begins: with the run, or now if that time is already over."""
    limits = [rules.deadline, rules.until.bound if rules.until.kind == "seconds" else None]
    allowed = min((limit for limit in limits if limit is not None), default=None)
    if not journal.dispatches:
        return now
    return now if allowed is None or now >= journal.began + allowed else journal.began


def _conclude(
    context: RunContext, state: State, finish: Finish, bucket: MeteredBucket, billing: Billing
) -> Outcome:
    exact = finish.state == "exact"
    known, decoding = context.estimate, context.decoding
    usage, bill, bound = run_cost(context, bucket, billing)
    if not exact:  # for the bill of a coordinator that carries on
        used = own_requests(context, bucket, billing)
        context.journal = update(context.store, lambda now: now.spending(used))
    if finish.state != "running":
        report = build_report(context, state, finish, usage, bill, bound, billing)
        context.store.put_report(report)
        context.store.put_report(report_page(report, error_curve(context)))
    context.put_status(finish.state, state.attempt, finish.message, bill.to_json())
    error_upper = 0.0 if exact else known.error_upper if known else math.inf
    error = 0.0 if exact else known.error if known else math.inf
    estimate_key = keys.estimate_key(context.store.run) if known else None
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
        cost=bill.to_json(),
        message=finish.message,
        method=context.method,
        rounding=decoding.error if exact and decoding else None,
        result_key=context.result_key if exact else estimate_key,
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
