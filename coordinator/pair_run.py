"""Start the product of two encoded matrices; everything after that is any other run."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace

from blockstore import keys
from blockstore.bucket import Bucket
from blockstore.pairs import MatrixPair
from blockstore.records import RunSpec
from blockstore.runs import RunStore
from coordinator.collect import THREADS
from coordinator.context import RunContext
from coordinator.decode_options import DecodeOptions, check_decoding
from coordinator.estimate import check_estimator
from coordinator.events import Event
from coordinator.form import AnswerForm
from coordinator.inputs import InputRefused, check_deadline
from coordinator.journal import Journal, timestamp
from coordinator.meter import MeteredBucket
from coordinator.outcome import Outcome
from coordinator.ports import Clock, Invoker, SystemClock
from coordinator.relaunch import Relaunch, parse_relaunch
from coordinator.report import Billing
from coordinator.run import carry
from coordinator.until import Until, parse_until
from polarcodes import code_from_manifest

__all__ = ["check_pair_until", "start_pair"]


def check_pair_until(until: str | Until) -> Until:
    """Return what is asked; raises `UntilRefused`, and `InputRefused` for "tasks=X".

    Blocks of a product of two coded factors have no rows of their own.
    """
    asked = parse_until(until)
    if asked.kind == "tasks":
        raise InputRefused(
            f"until {str(asked)!r} counts rows of A x: for a product of two encoded matrices use "
            "exact, error=X or seconds=T"
        )
    return asked


def start_pair(
    bucket: Bucket,
    pair: MatrixPair,
    *,
    invoker: Invoker,
    until: str | Until = "exact",
    deadline: float | None = None,
    estimator: str = "best",
    relaunch: str | float | Relaunch | None = None,
    decode: str = "local",
    result: str = "npy",
    options: DecodeOptions | None = None,
    on_event: Callable[[Event], None] | None = None,
    run: str | None = None,
    clock: Clock | None = None,
    billing: Billing | None = None,
    time_left: Callable[[], float] | None = None,
    threads: int = THREADS,
) -> Outcome:
    """Multiply A (n1, d) by B (d, n2): invoke the grid of workers, publish estimates, decode.

    Parameters, outcome and errors are those of `coordinator.run.start_run`; `until` is "exact",
    "error=0.1" or "seconds=5". arXiv 2309.00682, appendix.
    """
    asked = check_pair_until(until)
    limit = check_deadline(deadline)
    clock = clock or SystemClock()
    now = clock.now()
    run = keys.validate_run(run) if run else keys.new_run_id(int(now * 1000), os.urandom(10))
    policy = parse_relaunch(relaunch)
    check_estimator(code_from_manifest(pair.code), estimator)
    invoker.check()
    spec = RunSpec(
        run=run,
        created=timestamp(now),
        matrix=pair.left.name,
        right=pair.right.name,
        manifest_digest=pair.digest,
        encoding=pair.encoding,
        workers=pair.workers,
        x_shape=(pair.inner, pair.right.rows),
        x_dtype=pair.right.source_dtype,
        x_digest=pair.right.source_digest,
        until=str(asked),
        deadline=limit,
        estimator=estimator,
        relaunch=None if policy is None else str(policy),
        decode=decode,
        result=result,
    )
    options = replace(options or DecodeOptions(), time_left=time_left)
    check_decoding(AnswerForm.of_pair(pair), spec, options)
    metered = MeteredBucket(bucket)
    journal = Journal(spec).create(RunStore(metered, run))
    if journal is None:
        raise InputRefused(
            f"run {run} has begun already: resume it, or leave the id out to start another one"
        )
    context = RunContext.open(metered, pair, journal, clock, on_event, None, options)
    return carry(context, metered, invoker, billing, time_left, threads)
