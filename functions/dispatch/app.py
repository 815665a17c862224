"""Lambda handler of a dispatch function: event -> invocations of workers -> who was accepted."""

from __future__ import annotations

import time
from typing import Any

from coordinator.fan_out import DispatchEvent, DispatchRefused, reply
from coordinator.invoker import LambdaInvoker, lambda_client
from functions import log
from functions.dispatch.settings import DispatchSettings

THREADS = 32
LISTEN_SECONDS = 0.01
RESERVE_SECONDS = 5.0  # before the time limit, to answer with what has been done until then

_connections: tuple[DispatchSettings, Any] | None = None


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Invoke the workers of one `DispatchEvent` (docs/api.md).

    Returns {version, accepted: [worker, ...], failed: [{worker, kind, message}, ...]}; workers that
    are in neither were not invoked in time, and whoever asked invokes them. state "refused": the
    event is none of ours, and nothing was invoked. Idempotent as far as workers are: twice is
    harmless.
    """
    try:
        messages = DispatchEvent.from_json(event).messages()
    except DispatchRefused as exc:
        log.line("refused", message=str(exc))
        return {"version": 1, "state": "refused", "message": str(exc)}
    settings, client = _connect()
    invoker = LambdaInvoker(client, settings.worker, threads=THREADS, checked=True)
    invoker.submit(messages)
    reports = invoker.reports()
    while len(reports) < len(messages):
        if context.get_remaining_time_in_millis() / 1000 < RESERVE_SECONDS:
            break
        time.sleep(LISTEN_SECONDS)
        reports += invoker.reports()
    invoker.close()
    reports += invoker.reports()
    answer = reply(reports)
    accepted = len(answer["accepted"])
    log.line("dispatched", asked=len(messages), accepted=accepted, failed=answer["failed"][:3])
    return answer


def _connect() -> tuple[DispatchSettings, Any]:
    global _connections
    if _connections is None:
        _connections = DispatchSettings.read(), lambda_client(pool=THREADS)
    return _connections
