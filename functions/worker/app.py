"""Lambda handler of the worker: event -> a product -> an object, or a typed error record."""

from __future__ import annotations

import time
from typing import Any

from functions.threads import limit_threads

limit_threads()  # before NumPy is imported below

from blockstore.bucket import Bucket  # noqa: E402
from blockstore.connect import s3_client  # noqa: E402
from blockstore.errors import TaskRefused  # noqa: E402
from blockstore.pair_tasks import PairTask, parse_task  # noqa: E402
from blockstore.runs import RunStore  # noqa: E402
from functions import log  # noqa: E402
from functions.worker import report, several  # noqa: E402
from functions.worker.faults import RunStopped  # noqa: E402
from functions.worker.pair import multiply_pair  # noqa: E402
from functions.worker.product import multiply  # noqa: E402
from functions.worker.settings import WorkerSettings  # noqa: E402

_bucket: Bucket | None = None


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Do one task. Returns {state: answered | late | stopped | failed | refused, ...}.

    Idempotent: the key of the answer depends on the run and the worker alone, and the first valid
    answer stays. A failure is written as an error record; only an error nobody thought of is also
    raised, so that the platform's log has its traceback.
    """
    cold, began = _bucket is None, time.monotonic()
    try:
        task = parse_task(event)
    except TaskRefused as exc:
        log.line("refused", message=str(exc))
        return {"state": "refused", "error": {"type": "TaskRefused", "message": str(exc)}}
    store = RunStore(_connect(), task.run)

    def time_left() -> float:
        return float(context.get_remaining_time_in_millis() / 1000)

    try:
        if isinstance(task, PairTask):
            product = multiply_pair(store, task, time_left)
        elif task.subtasks > 1:
            return several.work(store, task, time_left, cold)
        else:
            product = multiply(store, task, time_left)
        metadata = report.metadata(task, product, cold, time.monotonic() - began)
        first = store.put_result(task.worker, product.value, metadata.to_metadata())
    except RunStopped as exc:
        log.line("stopped", message=str(exc), **report.bound(task))
        return {"state": "stopped", "message": str(exc)}
    except Exception as exc:  # noqa: BLE001 - whatever it is, the coordinator must hear of it
        return report.failure(store, task, exc)
    log.line("answered", first=first, **metadata.to_metadata() | report.bound(task))
    return {"state": "answered" if first else "late", "worker": task.worker, "run": task.run}


def _connect() -> Bucket:
    global _bucket
    if _bucket is None:
        _bucket = Bucket(s3_client(pool=8), WorkerSettings.read().bucket)
    return _bucket
