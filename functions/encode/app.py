"""Lambda handler that encodes: event -> leaves looked at, or tiles written -> JSON."""

from __future__ import annotations

import time
from typing import Any

from functions.threads import limit_threads

limit_threads()  # before NumPy is imported below

from blockstore.bucket import Bucket  # noqa: E402
from blockstore.connect import s3_client  # noqa: E402
from blockstore.errors import CorruptObject, StoreError, StoreUnavailable  # noqa: E402
from encoder.errors import EncodeError  # noqa: E402
from encoder.remote import ScanTask, parse_task  # noqa: E402
from encoder.work import scan_part, write_tiles  # noqa: E402
from functions import log  # noqa: E402
from functions.encode.settings import EncodeSettings  # noqa: E402

_connection: tuple[EncodeSettings, Bucket] | None = None


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Do one `encoder.remote` task. Returns {state: done | failed | refused, ...}.

    done: {low, high, leaves, bad} of a scan, or the {tiles} written, which may be some of those
    asked for when the time limit is near. failed: another call may succeed. refused: none will.
    """
    began = time.monotonic()
    try:
        task = parse_task(event)
        settings, bucket = _connect()
        if isinstance(task, ScanTask):
            answer = scan_part(bucket, task, settings.memory)
        else:
            tiles = write_tiles(
                bucket,
                task,
                memory=settings.memory,
                folder=settings.folder,
                time_left=lambda: context.get_remaining_time_in_millis() / 1000,
                clock=time.monotonic,
            )
            answer = {"tiles": tiles}
    except (EncodeError, StoreError) as exc:
        state = "failed" if isinstance(exc, StoreUnavailable | CorruptObject) else "refused"
        error = {"type": type(exc).__name__, "message": str(exc)}
        log.line(state, **error)
        return {"state": state, "error": error}
    log.line("done", seconds=round(time.monotonic() - began, 3), kind=type(task).__name__)
    return {"state": "done", **answer}


def _connect() -> tuple[EncodeSettings, Bucket]:
    global _connection
    if _connection is None:
        settings = EncodeSettings.read()
        _connection = settings, Bucket(s3_client(pool=16), settings.bucket)
    return _connection
