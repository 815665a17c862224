"""One product, by the deployed coordinator function."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from polarlambda.connect import function_client
from polarlambda.decoder import SMALL, stored_value
from polarlambda.deployed import (
    StatusWatcher,
    call_coordinator,
    cancel_deployed,
    check_coordinator,
)
from polarlambda.errors import BadInput
from polarlambda.result import Result
from polarlambda.settings import Settings

if TYPE_CHECKING:
    from blockstore.bucket import Bucket
    from blockstore.manifest import Manifest
    from polarlambda.product import Listeners
    from polarlambda.request import Request


def run_deployed(
    manifest: Manifest, bucket: Bucket, settings: Settings, request: Request, listeners: Listeners
) -> Result:
    """Upload x and have the deployed coordinator run the product; read the value by its key."""
    from blockstore.keys import asked_key, new_run_id, x_key
    from blockstore.runs import RunStore
    from coordinator.reference import check_reference

    function = settings.need("coordinator")
    client = function_client()
    check_coordinator(client, function)
    run = new_run_id(int(time.time() * 1000), os.urandom(10))
    store = RunStore(bucket, run)
    if request.reference is None:
        key = x_key(run)
        store.save_x(request.x)
    else:  # x.npy will be the difference
        key = asked_key(run)
        check_reference(bucket, request.reference, manifest, request.x.shape)
        store.save_asked(request.x)
    event = {"version": 1, "matrix": manifest.name, "x": key, "run": run, **request.options}
    return await_deployed(bucket, client, function, run, event, listeners)


def resume_deployed(bucket: Bucket, settings: Settings, run: str, listeners: Listeners) -> Result:
    """Have the deployed coordinator go on with a run; see `polarlambda.runs.resume_run`."""
    from blockstore.runs import RunStore

    function = settings.need("coordinator")
    RunStore(bucket, run).load_spec()
    client = function_client()
    event = {"version": 1, "resume": run}
    return await_deployed(bucket, client, function, run, event, listeners)


def await_deployed(
    bucket: Bucket,
    client: Any,
    function: str,
    run: str,
    event: dict[str, Any],
    listeners: Listeners,
) -> Result:
    """Wait for the function's answer; Ctrl-C cancels the run and returns its estimate."""
    try:
        with StatusWatcher(bucket, run, listeners.on_arrival) as watcher:
            answer = call_coordinator(client, function, event)
    except KeyboardInterrupt:  # it would go on without us, at our cost
        try:
            return _interrupted(bucket, run)
        except KeyboardInterrupt:  # in a hurry: no estimate, but nobody is paid any longer
            cancel_deployed(bucket, run)
            raise
    except BadInput:
        if "x" in event:  # a run that never began leaves nothing behind
            bucket.delete([event["x"]])
        raise
    if watcher.failure is not None:
        raise watcher.failure
    key = answer.get("result")
    return Result(
        run=answer["run"],
        state=answer["state"],
        value=stored_value(bucket, key, SMALL) if key else None,
        exact=answer["exact"],
        verified=answer["verified"],
        met=answer["met"],
        arrivals=answer["arrivals"],
        workers=answer["workers"],
        subtasks=answer["subtasks"],
        missing_rows=tuple((first, last) for first, last in answer["missing_rows"]),
        error=answer["error"],
        error_upper=answer["error_upper"],
        seconds=answer["seconds"],
        cost=answer["cost"]["total"] if answer["cost"] else None,
        bill=answer["cost"],
        message=answer["message"],
        method=answer["method"],
        metric=answer["metric"],
        absolute=answer["error_absolute"],
        rounding=answer["rounding"],
        reference=answer["reference"],
        verification=answer["verification"],
    )


def _interrupted(bucket: Bucket, run: str) -> Result:
    """What the deployed coordinator had published when it was told to stop."""
    from blockstore.errors import ObjectMissing
    from blockstore.runs import RunStore

    status, store = cancel_deployed(bucket, run), RunStore(bucket, run)
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
        subtasks=status.subtasks,
        error=status.error,
        error_upper=status.error_upper,
        seconds=status.seconds,
        cost=None,
        bill=None,
        message=status.message,
        method=status.method,
        metric=status.metric,
    )
