"""Lambda handler of the decode function: event -> a range of a product, or a typed error record."""

from __future__ import annotations

from typing import Any

from functions.threads import limit_threads

limit_threads()  # before NumPy is imported below

from blockstore.bucket import Bucket  # noqa: E402
from blockstore.connect import s3_client  # noqa: E402
from blockstore.errors import TaskRefused  # noqa: E402
from coordinator.decode_tasks import DecodeTask  # noqa: E402
from coordinator.windows import WindowMemory  # noqa: E402
from functions import log  # noqa: E402
from functions.decode.settings import DecodeSettings  # noqa: E402
from functions.decode.work import failure, work  # noqa: E402

_bucket: Bucket | None = None
_memory = WindowMemory()


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Do one `DecodeTask`. Returns {state: done | failed | refused, ...}.

    Idempotent: what it writes, and where, depends on the task alone. A failure is written as an
    error record, which the coordinator reads.
    """
    try:
        task = DecodeTask.from_event(event)
    except TaskRefused as exc:
        log.line("refused", message=str(exc))
        return {"state": "refused", "error": {"type": "TaskRefused", "message": str(exc)}}
    bound = {"run": task.run, "stage": task.stage, "number": task.worker, "attempt": task.attempt}
    bucket = _connect()

    def time_left() -> float:
        return float(context.get_remaining_time_in_millis() / 1000)

    try:
        check = work(bucket, task, time_left, _memory)
    except Exception as exc:  # noqa: BLE001 - whatever it is, the coordinator must hear of it
        record = failure(bucket, task, exc)
        log.line("failed", **bound, **record)
        return {"state": "failed", "error": record}
    log.line("decoded", residual=check.worst, **bound)
    return {"state": "done", "run": task.run, "number": task.worker}


def _connect() -> Bucket:
    global _bucket
    if _bucket is None:
        _bucket = Bucket(s3_client(pool=32), DecodeSettings.read().bucket)
    return _bucket
