"""Lambda handler of the worker: event -> a product -> an object, or a typed error record."""

from __future__ import annotations

from typing import Any

from functions.threads import limit_threads

limit_threads()  # before NumPy is imported below

from blockstore.bucket import Bucket  # noqa: E402
from blockstore.connect import s3_client  # noqa: E402
from blockstore.errors import TaskRefused  # noqa: E402
from blockstore.pair_tasks import parse_task  # noqa: E402
from blockstore.runs import RunStore  # noqa: E402
from blockstore.sessions import ResidentTask  # noqa: E402
from functions import log  # noqa: E402
from functions.worker import one, resident  # noqa: E402
from functions.worker.settings import WorkerSettings  # noqa: E402

_bucket: Bucket | None = None


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Do one task, or stay as a `ResidentTask` says and do those of its session's runs.

    Returns {state: answered | late | stopped | failed | ended | refused, ...}. Idempotent: the key
    of an answer depends on the run and the worker alone, and the first valid answer stays. A
    failure is written as an error record; only an error nobody thought of is also raised, so that
    the platform's log has its traceback.
    """
    cold = _bucket is None

    def time_left() -> float:
        return float(context.get_remaining_time_in_millis() / 1000)

    try:
        if "session" in event:
            return resident.serve(_connect(), ResidentTask.from_event(event), time_left, cold)
        task = parse_task(event)
    except TaskRefused as exc:
        log.line("refused", message=str(exc))
        return {"state": "refused", "error": {"type": "TaskRefused", "message": str(exc)}}
    return one.do(RunStore(_connect(), task.run), task, time_left, cold)


def _connect() -> Bucket:
    global _bucket
    if _bucket is None:
        _bucket = Bucket(s3_client(pool=8), WorkerSettings.read().bucket)
    return _bucket
