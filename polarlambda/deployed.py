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
    from blockstore.records import RunStatus

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


def cancel_deployed(bucket: Bucket, run: str) -> RunStatus:
    """Stop the deployed coordinator, also one that has not begun yet; the status then."""
    from blockstore.errors import ObjectMissing
    from blockstore.records import RunStatus
    from blockstore.runs import RunStore
    from coordinator.run import cancel_run

    store = RunStore(bucket, run)
    try:
        return cancel_run(bucket, run)
    except ObjectMissing:  # it finds the marker when it begins
        store.put_stop(1)
        message = "the run was cancelled before it began"
        return RunStatus(run=run, state="cancelled", arrivals=0, workers=1, message=message)


class StatusWatcher:
    """Tells ``on_arrival`` what the status of a run says, from a thread, while in its context.

    What ``on_arrival`` raises cancels the run, so that the coordinator answers and nobody is paid
    any longer; it is kept in ``failure`` for whoever waits for that answer.
    """

    def __init__(
        self, bucket: Bucket, run: str, on_arrival: Callable[[Arrival], None] | None
    ) -> None:
        from blockstore.runs import RunStore

        self.failure: BaseException | None = None
        self._bucket = bucket
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
                try:
                    self._tell(_arrival(status))
                except BaseException as error:  # noqa: BLE001 - raised in the caller's own thread
                    self.failure = error
                    cancel_deployed(self._bucket, status.run)
                    return

    def __enter__(self) -> StatusWatcher:
        if self._tell is not None:
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        if self._tell is not None:
            self._thread.join()


def _arrival(status: RunStatus) -> Arrival:
    return Arrival(
        run=status.run,
        seconds=status.seconds,
        arrivals=status.arrivals,
        workers=status.workers,
        subtasks=status.subtasks,
        error=status.error,
        metric=status.metric,
        error_upper=status.error_upper,
    )
