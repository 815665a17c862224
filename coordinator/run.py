"""Start, resume and cancel runs: the same code in the command and in the coordinator function."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from blockstore import keys
from blockstore.arrays import array_digest
from blockstore.bucket import Bucket
from blockstore.manifest import Manifest
from blockstore.pairs import load_subject
from blockstore.records import RunSpec
from blockstore.runs import RunStore
from coordinator.cancel import cancel_run
from coordinator.collect import Collector, fetch_threads
from coordinator.conclude import Later, at_once, conclude
from coordinator.context import RunContext
from coordinator.decode_options import DecodeOptions, check_decoding
from coordinator.dispatch import Dispatcher
from coordinator.estimate import check_estimator
from coordinator.events import Event
from coordinator.finished import load_finished
from coordinator.form import AnswerForm
from coordinator.inputs import InputRefused, MatrixReplaced, check_deadline, check_x
from coordinator.journal import Journal, load_journal, timestamp
from coordinator.loop import RunLoop
from coordinator.machine import PUBLISH_INTERVAL
from coordinator.meter import MeteredBucket
from coordinator.outcome import Outcome
from coordinator.pace import FASTEST
from coordinator.performer import Performer
from coordinator.ports import Clock, Invoker, SystemClock
from coordinator.reference import load_reference
from coordinator.relaunch import Relaunch, parse_relaunch
from coordinator.report import Billing
from coordinator.restore import opening, restore_tasks, stop_markers
from coordinator.state import Rules, initial_state
from coordinator.stored_answers import StoredAnswers
from coordinator.until import Until, parse_until
from polarcodes import code_from_manifest

__all__ = ["cancel_run", "carry", "resume_run", "start_run"]


def start_run(
    bucket: Bucket,
    manifest: Manifest,
    x: NDArray[Any],
    *,
    invoker: Invoker,
    until: str | Until = "exact",
    deadline: float | None = None,
    estimator: str = "best",
    metric: str = "vector",
    relaunch: str | float | Relaunch | None = None,
    reference: str | None = None,
    decode: str = "local",
    result: str = "npy",
    options: DecodeOptions | None = None,
    on_event: Callable[[Event], None] | None = None,
    run: str | None = None,
    clock: Clock | None = None,
    billing: Billing | None = None,
    time_left: Callable[[], float] | None = None,
    threads: int | None = None,
    fastest: float = FASTEST,
    later: Later = at_once,
) -> Outcome:
    """Multiply: invoke the workers, publish estimates, decode, write result and report.

    Parameters
    ----------
    x : (d,) or (d, k), real and finite
    until : "exact", "error=0.1", "seconds=5" or "tasks=0.95"
    deadline : seconds from now; by default the worker's time-out and 30 s after the last invocation
    estimator, metric : which estimate is published and returned, and what its errors are errors of
        (`coordinator.estimate.check_estimator`)
    relaunch : "share=0.9", "times=3" or both: when slow workers are invoked once more
    reference : id of an exact run on this matrix with an x_ref of the same shape: the workers get
        x - x_ref, and A x_ref is added to what they answer (`coordinator.reference`)
    decode : "local" or "lambda", where the product is decoded; result : "npy" or "zarr", what it is
        written as; options : memory of this process, and the decode function
    run : id to use (`blockstore.keys.new_run_id`); drawn if None
    billing : memory, time-out and prices of the worker function, and the planned figures
    time_left : seconds until the platform ends this process: near it the run is handed over
    fastest : seconds between two looks for answers, at least
    later : does what only records a run that has ended: report and status

    Returns the outcome, also of a run that did not reach what was asked (`Outcome.met`).

    Raises
    ------
    InputRefused, UntilRefused, RelaunchRefused, NameRefused, InvokeError : before anything is
        written or invoked
    StoreError : the coordinator's own access to the store fails; the run can be resumed
    Anything that on_event raises, after the run was ended as by Ctrl-C: it can be resumed
    """
    asked = parse_until(until)
    limit = check_deadline(deadline)
    vector = check_x(x, manifest)
    clock = clock or SystemClock()
    now = clock.now()
    drawn = run is None
    run = keys.validate_run(run) if run else keys.new_run_id(int(now * 1000), os.urandom(10))
    policy = parse_relaunch(relaunch)
    check_estimator(code_from_manifest(manifest.code), estimator, metric)  # the code can be made
    invoker.check()
    metered = MeteredBucket(bucket)
    known = load_reference(metered, reference, manifest, vector.shape) if reference else None
    sent = vector if known is None else known.difference(vector)
    spec = RunSpec(
        run=run,
        created=timestamp(now),
        matrix=manifest.name,
        manifest_digest=manifest.digest,
        encoding=manifest.encoding,
        workers=manifest.workers,
        subtasks=manifest.shares.per_worker,
        x_shape=sent.shape,
        x_dtype=sent.dtype.str,
        x_digest=array_digest(sent),
        until=str(asked),
        deadline=limit,
        estimator=estimator,
        metric=metric,
        relaunch=None if policy is None else str(policy),
        reference=reference,
        decode=decode,
        result=result,
    )
    options = replace(options or DecodeOptions(), time_left=time_left)
    check_decoding(AnswerForm.of(manifest, sent.shape, sent.dtype.str), spec, options)
    store = RunStore(metered, run)
    taken = f"run {run} has begun already: resume it, or leave the id out to start another one"
    if not drawn and metered.head(keys.run_key(run)) is not None:
        raise InputRefused(taken)
    if known is not None:
        store.save_asked(vector)
    store.save_x(sent)
    journal = Journal(spec, fresh=drawn)
    if not drawn:
        created = journal.create(store)
        if created is None:  # an event delivered twice starts one run
            raise InputRefused(taken)
        journal = created
    context = RunContext.open(metered, manifest, journal, clock, on_event, known, options)
    return carry(context, metered, invoker, billing, time_left, threads, fastest, later)


def resume_run(
    bucket: Bucket,
    run: str,
    *,
    invoker: Invoker,
    options: DecodeOptions | None = None,
    on_event: Callable[[Event], None] | None = None,
    clock: Clock | None = None,
    billing: Billing | None = None,
    time_left: Callable[[], float] | None = None,
    threads: int | None = None,
) -> Outcome:
    """Carry on with a run whose coordinator died, was stopped, or handed it over.

    A run that is exact is not computed again: what is stored is returned. With a decisive set
    stored, only decodes: the same bytes. Else takes in the answers that are
    there, waits for workers that still run, and invokes those that were never invoked, died or
    failed, with the next attempt number. A deadline (or `seconds=T`) that has passed counts anew.

    Raises `ObjectMissing` for no such run, `MatrixReplaced` if the matrix was encoded anew since,
    `InputRefused` if its reference is gone, and what `start_run` raises.
    """
    options = replace(options or DecodeOptions(), time_left=time_left)
    metered = MeteredBucket(bucket)
    store = RunStore(metered, run)
    journal = load_journal(store)
    manifest = load_subject(metered, journal.spec)
    if manifest.digest != journal.spec.manifest_digest:
        names = " or ".join(repr(n) for n in (journal.spec.matrix, journal.spec.right) if n)
        raise MatrixReplaced(
            f"matrix {names} was encoded again since run {run} began: start a new run"
        )
    if journal.spec.decisive is None:
        invoker.check()
    elif (finished := load_finished(store, options.memory)) is not None:
        return finished
    clock, spec = clock or SystemClock(), journal.spec
    known = None
    if spec.reference is not None and isinstance(manifest, Manifest):
        known = load_reference(metered, spec.reference, manifest, spec.x_shape)
    context = RunContext.open(metered, manifest, journal, clock, on_event, known, options)
    return carry(context, metered, invoker, billing, time_left, threads)


def carry(
    context: RunContext,
    bucket: MeteredBucket,
    invoker: Invoker,
    billing: Billing | None,
    time_left: Callable[[], float] | None,
    threads: int | None,
    fastest: float = FASTEST,
    later: Later = at_once,
) -> Outcome:
    """Put the parts together, run the loop, write status and report."""
    billing = billing or Billing()
    manifest, journal, store = context.manifest, context.journal, context.store
    spec, clock = journal.spec, context.clock
    stops = stop_markers(store) if journal.dispatches else frozenset()
    state = initial_state(
        context.judge,
        rules := Rules(
            parse_until(spec.until),
            billing.worker_timeout,
            spec.deadline,
            relaunch=parse_relaunch(spec.relaunch),
        ),
        opening(journal, rules, clock.now()),
        tasks=restore_tasks(journal, stops),
        attempt=max([0, *stops, *(d.attempt for d in journal.dispatches)]),
        decisive=spec.decisive,
        shares=manifest.subtasks,
        recovered=context.recovered.share,
    )
    quick = fastest < FASTEST  # expected to be over before a note of who was invoked, or an
    if quick:  # estimate, could be of use to anybody
        state = replace(state, publish_after=state.opened + PUBLISH_INTERVAL)
    collector = Collector(
        store,
        context.answers.form,
        x_digest=spec.x_digest,
        encoding=spec.encoding,
        workers=manifest.workers,
        clock=clock,
        threads=threads or fetch_threads(manifest.workers),
        stored=isinstance(context.answers, StoredAnswers),
    )
    dispatcher = Dispatcher(
        context,
        invoker,
        concurrency=billing.concurrency if billing.stays is None else 0,
        worker_timeout=billing.worker_timeout,
        save_after=PUBLISH_INTERVAL if quick else 0.0,
    )
    performer = Performer(context, dispatcher, stops)
    loop = RunLoop(context, state, collector, dispatcher, performer, time_left, fastest)
    finish = loop.run()
    outcome = conclude(context, loop.state, finish, bucket, billing, later)
    if context.listener_failure is not None:
        raise context.listener_failure
    return outcome
