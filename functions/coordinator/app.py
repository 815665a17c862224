"""Lambda handler of the coordinator: event -> one run, or its next part -> its outcome as JSON."""

from __future__ import annotations

from typing import Any

from functions.threads import limit_threads

limit_threads()  # before NumPy is imported below

from blockstore.bucket import Bucket  # noqa: E402
from blockstore.connect import s3_client  # noqa: E402
from coordinator.collect import MOST_THREADS  # noqa: E402
from coordinator.decode_options import DecodeOptions  # noqa: E402
from coordinator.fan_out import make_invoker  # noqa: E402
from coordinator.invoker import lambda_client  # noqa: E402
from functions import log  # noqa: E402
from functions.coordinator.decoders import decode_functions  # noqa: E402
from functions.coordinator.request import parse_request  # noqa: E402
from functions.coordinator.serve import REFUSALS, serve  # noqa: E402
from functions.coordinator.settings import CoordinatorSettings  # noqa: E402

THREADS = 32

_connections: tuple[CoordinatorSettings, Bucket, Any] | None = None


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Start, resume or cancel a run (docs/api.md).

    Returns {version, run, state, met, exact, verified, error, error_upper, arrivals, workers,
    result (key), seconds, cost, message}. state "running": the time limit was near, resume the run.
    state "refused": the event, the matrix, x or the worker function is not acceptable; nothing was
    written or invoked. Trouble of the platform (permissions, no S3) is raised.
    """
    try:
        request = parse_request(event)
        settings, bucket, client = _connect()
        names, least = (settings.worker, settings.dispatch), settings.dispatch_from
        invoker = make_invoker(client, *names, threads=THREADS, least=least)
        answer = serve(
            request,
            bucket,
            invoker,
            settings.billing,
            DecodeOptions(settings.memory, decode_functions(settings, client)),
            lambda: context.get_remaining_time_in_millis() / 1000,
        )
    except REFUSALS as exc:
        log.line("refused", type=type(exc).__name__, message=str(exc))
        kind, message = type(exc).__name__, str(exc)
        return {"version": 1, "state": "refused", "error_type": kind, "message": message}
    log.line("ended", **answer)
    return answer


def _connect() -> tuple[CoordinatorSettings, Bucket, Any]:
    global _connections
    if _connections is None:
        settings = CoordinatorSettings.read()
        bucket = Bucket(s3_client(pool=MOST_THREADS), settings.bucket)
        _connections = settings, bucket, lambda_client(pool=THREADS)
    return _connections
