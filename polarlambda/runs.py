"""The runs of a bucket: list, show, watch, resume, cancel, delete. All their state is in S3."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from polarlambda.connect import Place, open_bucket
from polarlambda.errors import BadInput

if TYPE_CHECKING:
    from blockstore.bucket import Bucket
    from blockstore.records import RunSpec, RunStatus
    from blockstore.runs import RunStore
    from coordinator.events import Event
    from polarlambda.result import Arrival, Result

ENDED = ("exact", "estimated", "failed", "cancelled", "stopped")


def list_runs(**place: str | None) -> list[tuple[RunSpec, RunStatus | None]]:
    """What was asked and how far it is, of all runs, oldest first.

    A run that has not said how far it is has status None. Cost: two GETs per run.
    """
    from concurrent.futures import ThreadPoolExecutor

    from blockstore.runs import list_runs

    bucket = Place(**place).open_bucket()
    with ThreadPoolExecutor(16, thread_name_prefix="runs") as pool:
        found = pool.map(lambda run: _look(bucket, run), list_runs(bucket))
        return [pair for pair in found if pair is not None]


def show_run(run: str, **place: str | None) -> dict[str, Any]:
    """Everything that is known of a run, as plain JSON: spec, status, errors, report.

    ``status`` and ``report`` are None while there are none. Raises `ObjectMissing` for no run.
    """
    from blockstore.errors import ObjectMissing

    store = _store(run, place)
    shown: dict[str, Any] = {"spec": store.load_spec().to_json()}
    status = _status(store)
    shown["status"] = status.to_json() if status else None
    shown["errors"] = [
        store.get_error(worker, attempt).to_json() for worker, attempt in store.list_errors()
    ]
    try:
        shown["report"] = store.get_report()
    except ObjectMissing:
        shown["report"] = None
    return shown


def watch_run(
    run: str,
    *,
    every: float = 0.5,
    sleep: Callable[[float], None] = time.sleep,
    **place: str | None,
) -> Iterator[RunStatus]:
    """The statuses of a run as they change, until it has ended.

    Looks every ``every`` seconds. Raises `ObjectMissing` when there is no such run. A run whose
    coordinator died does not end by itself: `resume_run` goes on with it.
    """
    store = _store(run, place)
    store.load_spec()
    last = None
    while last is None or last.state not in ENDED:
        status = _status(store)
        if status is not None and status != last:
            last = status
            yield status
        else:
            sleep(every)


def resume_run(
    run: str,
    *,
    on: Literal["local", "lambda"] = "local",
    memory: int | str | None = None,
    on_arrival: Callable[[Arrival], None] | None = None,
    on_event: Callable[[Event], None] | None = None,
    **place: str | None,
) -> Result:
    """Go on with a run whose coordinator died or was stopped, from what is in the bucket.

    Arguments as of `CodedMatrix.multiply`. Once the decisive set of answers was stored, the result
    has the same bytes whoever computes it. Raises `ObjectMissing` when there is no such run,
    `MatrixMissing` or `MatrixReplaced` when its matrix is gone or was encoded anew.
    """
    from blockstore.keys import validate_run
    from polarlambda.decoder import read_memory
    from polarlambda.pair_run import remove_temporary
    from polarlambda.product import Listeners, resume_here
    from polarlambda.product_deployed import resume_deployed

    settings = Place(**place).settings()
    bucket = open_bucket(settings, pool=64)
    parts = bucket, settings, validate_run(run), Listeners(on_arrival, on_event)
    if on == "local":
        result = resume_here(*parts, memory=read_memory(memory))
    elif memory is not None:
        raise BadInput("memory is the function's own with on='lambda': leave it out")
    else:
        result = resume_deployed(*parts)
    if result.met:  # what was encoded for this run alone
        remove_temporary(bucket, run)
    return result


def cancel_run(run: str, **place: str | None) -> RunStatus:
    """End a run: workers that have not begun do not begin, the coordinator stops.

    Returns the status then; that of a run which had ended before is what it was. Raises
    `ObjectMissing` when there is no such run.
    """
    from coordinator.run import cancel_run

    return cancel_run(Place(**place).open_bucket(), run)


def delete_run(run: str, **place: str | None) -> int:
    """Delete everything of a run that has ended; returns the number of objects.

    Raises `ObjectMissing` when there is no such run, `BadInput` when it has not ended: with its
    stop marker gone, its workers would begin and write into what was deleted. What a worker that
    is still busy after the end writes later expires like all runs do.
    """
    from blockstore.errors import ObjectMissing
    from blockstore.runs import delete_run
    from polarlambda.pair_run import remove_temporary

    store = _store(run, place)
    try:
        store.load_spec()
    except ObjectMissing:  # x that was uploaded and never used
        return delete_run(store.bucket, run)
    status = _status(store)
    if status is None or status.state not in ENDED:
        raise BadInput(
            f"run {run} has not ended: `polarlambda runs cancel {run}` ends it, also when its "
            "coordinator is dead; delete it then"
        )
    remove_temporary(store.bucket, run)
    return delete_run(store.bucket, run)


def _look(bucket: Bucket, run: str) -> tuple[RunSpec, RunStatus | None] | None:
    """None for x without a run: it was uploaded and never used, or the run is being deleted."""
    from blockstore.errors import ObjectMissing
    from blockstore.runs import RunStore

    store = RunStore(bucket, run)
    try:
        return store.load_spec(), _status(store)
    except ObjectMissing:
        return None


def _store(run: str, place: dict[str, str | None]) -> RunStore:
    from blockstore.keys import validate_run
    from blockstore.runs import RunStore

    return RunStore(Place(**place).open_bucket(), validate_run(run))


def _status(store: RunStore) -> RunStatus | None:
    from blockstore.errors import ObjectMissing

    try:
        return store.get_status()
    except ObjectMissing:
        return None
