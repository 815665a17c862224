"""What the coordinator function does with a request: the run code that the command calls too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from blockstore.arrays import get_array
from blockstore.bucket import Bucket
from blockstore.errors import (
    ArrayRefused,
    CorruptObject,
    ManifestError,
    MatrixMissing,
    NameRefused,
    ObjectMissing,
)
from blockstore.manifest import Manifest, load_manifest
from blockstore.pairs import MatrixPair, load_subject
from blockstore.runs import RunStore
from coordinator import reference
from coordinator.decode_options import DecodeOptions, decode_wish
from coordinator.decode_wish import DecodeWish
from coordinator.inputs import InputRefused, check_x
from coordinator.invoker import FunctionMissing
from coordinator.pair_plan import plan_pair
from coordinator.pair_run import start_pair
from coordinator.planning import QUICK_ROUNDS, Platform, plan_multiply
from coordinator.ports import Invoker
from coordinator.refusals import PlanRefused
from coordinator.relaunch import RelaunchRefused
from coordinator.report import Billing
from coordinator.run import cancel_run, resume_run, start_run
from coordinator.until import UntilRefused
from functions.coordinator.request import Cancel, Request, RequestRefused, Resume, StartPair

__all__ = ["REFUSALS", "serve"]

REFUSALS = (
    RequestRefused,
    InputRefused,
    UntilRefused,
    RelaunchRefused,
    PlanRefused,
    NameRefused,
    ArrayRefused,
    MatrixMissing,
    ManifestError,
    ObjectMissing,
    FunctionMissing,
)


def serve(
    request: Request,
    bucket: Bucket,
    invoker: Invoker,
    billing: Billing,
    options: DecodeOptions,
    time_left: Callable[[], float],
) -> dict[str, Any]:
    """Do what is asked; the outcome as JSON. Raises what `coordinator.run` raises."""
    if isinstance(request, Cancel):
        status = cancel_run(bucket, request.run)
        return {"version": 1, "run": request.run, "state": status.state}
    if isinstance(request, Resume):
        spec = RunStore(bucket, request.run).load_spec()
        subject = load_subject(bucket, spec)
        wish = decode_wish(spec.decode, spec.result, options)
        if isinstance(subject, MatrixPair):
            planned = _plan_pair(subject, billing, wish)
        else:
            planned = _plan(subject, spec.x_shape, spec.x_dtype, billing, wish)
        outcome = resume_run(
            bucket,
            request.run,
            invoker=invoker,
            billing=planned,
            options=options,
            time_left=time_left,
        )
        return outcome.to_json()
    manifest = load_manifest(bucket, request.matrix)
    if isinstance(request, StartPair):
        pair = MatrixPair(manifest, load_manifest(bucket, request.right))
        outcome = start_pair(
            bucket,
            pair,
            invoker=invoker,
            until=request.until,
            deadline=request.deadline,
            estimator=request.estimator,
            relaunch=request.relaunch,
            decode=request.decode,
            result=request.result,
            options=options,
            run=request.run,
            billing=_plan_pair(pair, billing, decode_wish(request.decode, request.result, options)),
            time_left=time_left,
        )
        return outcome.to_json()
    try:
        x = check_x(get_array(bucket, request.x), manifest)
    except CorruptObject as exc:
        raise InputRefused(f"x: {exc}") from exc
    sent = x.dtype if request.reference is None else reference.DTYPE
    outcome = start_run(
        bucket,
        manifest,
        x,
        invoker=invoker,
        until=request.until,
        deadline=request.deadline,
        estimator=request.estimator,
        metric=request.metric,
        relaunch=request.relaunch,
        reference=request.reference,
        decode=request.decode,
        result=request.result,
        options=options,
        run=request.run,
        billing=_plan(
            manifest,
            x.shape,
            sent.str,
            billing,
            decode_wish(request.decode, request.result, options),
        ),
        time_left=time_left,
    )
    return outcome.to_json()


def _plan(
    manifest: Manifest,
    x_shape: tuple[int, ...],
    x_dtype: str,
    billing: Billing,
    wish: DecodeWish,
) -> Billing:
    """The billing with the planned figures; raises `PlanRefused` for what fits neither function."""
    plan = plan_multiply(
        manifest,
        x_shape,
        x_dtype,
        worker_memory_mb=billing.worker_memory_mb,
        worker_timeout=billing.worker_timeout,
        on="lambda",
        coordinator_memory_mb=billing.coordinator_memory_mb,
        wish=wish,
        prices=billing.prices,
        platform=Platform(concurrency=billing.concurrency) if billing.concurrency else None,
        rounds=QUICK_ROUNDS,
    )
    return replace(billing, planned=plan.to_json())


def _plan_pair(pair: MatrixPair, billing: Billing, wish: DecodeWish) -> Billing:
    """The same for a product of two encoded matrices."""
    plan = plan_pair(
        pair,
        worker_memory_mb=billing.worker_memory_mb,
        worker_timeout=billing.worker_timeout,
        on="lambda",
        coordinator_memory_mb=billing.coordinator_memory_mb,
        wish=wish,
        prices=billing.prices,
        rounds=QUICK_ROUNDS,
    )
    return replace(billing, planned=plan.to_json())
