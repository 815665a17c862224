"""What a worker leaves in the store besides the product: figures, or a typed error record."""

from __future__ import annotations

import resource
import sys
from typing import Any

from blockstore.answers import AnswerMetadata
from blockstore.pair_tasks import Task
from blockstore.records import ErrorRecord
from blockstore.runs import RunStore
from functions import log
from functions.worker.faults import WorkerError, is_fatal
from functions.worker.product import Product

MAX_MESSAGE = 1000


def metadata(
    task: Task, product: Product, cold: bool, seconds: float, polls: int = 0
) -> AnswerMetadata:
    """The answer's metadata: what was multiplied, and where time and memory went."""
    return AnswerMetadata(
        x_digest=task.x_digest,
        encoding=task.encoding,
        attempt=task.attempt,
        cold=cold,
        seconds_read=product.seconds_read,
        seconds_multiply=product.seconds_multiply,
        seconds_total=seconds,
        peak_memory=peak_memory(),
        scale=product.scale,
        polls=polls,
        looks=product.looks,
        finite=True,  # or `multiply` would have raised
    )


def peak_memory() -> int:
    """Largest resident set of this process so far, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def bound(task: Task) -> dict[str, Any]:
    """The fields by which every log line of a task is found."""
    return {"run": task.run, "worker": task.worker, "attempt": task.attempt}


def failure(store: RunStore, task: Task, exc: Exception) -> dict[str, Any]:
    """Write the error record of `exc` and return the handler's answer.

    Raises `exc` again if it is none of the errors a worker knows.
    """
    kind, message = type(exc).__name__, str(exc)[:MAX_MESSAGE]
    known = isinstance(exc, WorkerError) or type(exc).__module__ == "blockstore.errors"
    record = ErrorRecord(
        worker=task.worker,
        attempt=task.attempt,
        type=kind,
        message=message,
        where="product",
        fatal=is_fatal(exc),
    )
    log.line("failed", type=kind, message=message, fatal=record.fatal, **bound(task))
    store.put_error(record)
    if not known and not isinstance(exc, MemoryError | OSError):
        raise exc
    return {"state": "failed", "error": {"type": kind, "message": message}}
