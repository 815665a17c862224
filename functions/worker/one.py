"""One task of a worker, whatever comes of it: an answer, a stop, or a typed error record."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from blockstore.pair_tasks import PairTask, Task
from blockstore.runs import RunStore
from functions import log
from functions.worker import report, several
from functions.worker.faults import RunStopped
from functions.worker.pair import multiply_pair
from functions.worker.product import STORED, Inputs, multiply

__all__ = ["do"]


def do(
    store: RunStore,
    task: Task,
    time_left: Callable[[], float],
    cold: bool,
    inputs: Inputs = STORED,
    polls: int = 0,
) -> dict[str, Any]:
    """Do a task. Returns {state: answered | late | stopped | failed, ...}.

    A failure is written as an error record; only an error nobody thought of is also raised.
    """
    began = time.monotonic()
    try:
        if isinstance(task, PairTask):
            product = multiply_pair(store, task, time_left)
        elif task.subtasks > 1:
            return several.work(store, task, time_left, cold, inputs, polls)
        else:
            product = multiply(store, task, time_left, inputs=inputs)
        metadata = report.metadata(task, product, cold, time.monotonic() - began, polls)
        first = store.put_result(task.worker, product.value, metadata.to_metadata())
    except RunStopped as exc:
        log.line("stopped", message=str(exc), **report.bound(task))
        return {"state": "stopped", "message": str(exc)}
    except Exception as exc:  # noqa: BLE001 - whatever it is, the coordinator must hear of it
        return report.failure(store, task, exc)
    log.line("answered", first=first, **metadata.to_metadata() | report.bound(task))
    return {"state": "answered" if first else "late", "worker": task.worker, "run": task.run}
