"""What the coordinator function does with a request: the run code that the command calls too."""

from __future__ import annotations

from collections.abc import Callable
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
from blockstore.manifest import load_manifest
from coordinator.inputs import InputRefused
from coordinator.invoker import FunctionMissing
from coordinator.ports import Invoker
from coordinator.report import Billing
from coordinator.run import cancel_run, resume_run, start_run
from coordinator.until import UntilRefused
from functions.coordinator.request import Cancel, Request, RequestRefused, Resume

__all__ = ["REFUSALS", "serve"]

REFUSALS = (
    RequestRefused,
    InputRefused,
    UntilRefused,
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
    time_left: Callable[[], float],
) -> dict[str, Any]:
    """Do what is asked; the outcome as JSON. Raises what `coordinator.run` raises."""
    if isinstance(request, Cancel):
        cancel_run(bucket, request.run)
        return {"version": 1, "run": request.run, "state": "cancelled"}
    if isinstance(request, Resume):
        outcome = resume_run(
            bucket, request.run, invoker=invoker, billing=billing, time_left=time_left
        )
        return outcome.to_json()
    manifest = load_manifest(bucket, request.matrix)
    try:
        x = get_array(bucket, request.x)
    except CorruptObject as exc:
        raise InputRefused(f"x: {exc}") from exc
    outcome = start_run(
        bucket,
        manifest,
        x,
        invoker=invoker,
        until=request.until,
        deadline=request.deadline,
        run=request.run,
        billing=billing,
        time_left=time_left,
    )
    return outcome.to_json()
