"""End a run from elsewhere."""

from __future__ import annotations

from dataclasses import replace

from blockstore.bucket import Bucket
from blockstore.errors import ObjectMissing
from blockstore.records import RunStatus
from blockstore.runs import RunStore

__all__ = ["FINAL", "cancel_run"]

FINAL = ("exact", "estimated", "failed", "cancelled", "stopped")


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
