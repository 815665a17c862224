"""A product run by the deployed coordinator function: one synchronous invocation, or a few."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from polarlambda.errors import BadInput, PlatformError
from polarlambda.result import Arrival

if TYPE_CHECKING:
    from blockstore.bucket import Bucket

POLL_SECONDS = 0.5


def call_coordinator(client: Any, function: str, event: dict[str, Any]) -> dict[str, Any]:
    """Invoke the coordinator and wait for its answer; resume the run while it says "running".

    ``client`` must not repeat requests by itself (`coordinator.invoker.lambda_client`): boto3 would
    send a synchronous invocation again after a time-out, and with it start a second run.
    Raises `BadInput` for what the function refuses or when there is no such function, else
    `PlatformError`.
    """
    while True:
        answer = _invoke(client, function, event)
        if answer.get("state") != "running":
            return answer
        event = {"version": 1, "resume": answer["run"]}


def check_coordinator(client: Any, function: str) -> None:
    """Raise unless the function is there and may be invoked; a dry run that starts nothing."""
    from coordinator.invoker import FunctionMissing, LambdaInvoker

    try:
        LambdaInvoker(client, function).check()
    except FunctionMissing as error:
        raise BadInput(
            f"the coordinator function {function!r} does not exist (or not in this region): deploy "
            "the stack, or check POLARLAMBDA_COORDINATOR"
        ) from error


def _invoke(client: Any, function: str, event: dict[str, Any]) -> dict[str, Any]:
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        response = client.invoke(FunctionName=function, Payload=json.dumps(event).encode())
        payload = json.loads(response["Payload"].read())
    except (ClientError, BotoCoreError, ValueError) as error:
        raise PlatformError(f"the coordinator function {function!r} gave no answer: {error}") from (
            error
        )
    if "FunctionError" in response:
        kind = payload.get("errorType", "error")
        raise PlatformError(
            f"the coordinator function {function!r} failed: {kind}: {payload.get('errorMessage')}"
        )
    if not isinstance(payload, dict):
        raise PlatformError(f"the coordinator function {function!r} answered {payload!r}")
    if payload.get("state") == "refused":
        raise BadInput(str(payload.get("message")))
    return payload


class StatusWatcher:
    """Tells ``on_arrival`` what the status of a run says, from a thread, while in its context."""

    def __init__(
        self, bucket: Bucket, run: str, on_arrival: Callable[[Arrival], None] | None
    ) -> None:
        from blockstore.runs import RunStore

        self._store = RunStore(bucket, run)
        self._tell = on_arrival
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"watch-{run}", daemon=True)

    def _watch(self) -> None:
        from blockstore.errors import StoreError

        seen = -1
        while not self._ended.wait(POLL_SECONDS):
            try:
                status = self._store.get_status()
            except StoreError:  # not written yet; the coordinator is the one who reports faults
                continue
            if status.arrivals > seen and self._tell is not None:
                seen = status.arrivals
                self._tell(
                    Arrival(
                        run=status.run,
                        seconds=status.seconds,
                        arrivals=status.arrivals,
                        workers=status.workers,
                        subtasks=status.subtasks,
                        error=status.error,
                        error_upper=status.error_upper,
                    )
                )

    def __enter__(self) -> StatusWatcher:
        if self._tell is not None:
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        if self._tell is not None:
            self._thread.join()
