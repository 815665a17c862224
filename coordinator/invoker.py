"""Asynchronous Lambda invocations (`InvocationType=Event`) from a thread pool.

An Event invocation costs about 50 ms of client time, so a fan-out is threads over one client whose
connection pool is as large. Throttling (429) and failures of the service are tried again with
jittered, growing pauses, a Retry-After header being respected; a permission or a function that is
not there is not. An invocation that is sent twice is harmless: workers are idempotent. Every event
says when it was `sent`: a worker that begins at once need not ask whether its run is still on.
"""

from __future__ import annotations

import json
import queue
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError

from coordinator.ports import Invocation, InvokeReport

__all__ = [
    "FunctionMissing",
    "InvokeDenied",
    "InvokeError",
    "InvokeUnavailable",
    "LambdaInvoker",
    "lambda_client",
]

DEFAULT_REGION = "us-east-1"
ATTEMPTS = 8
FIRST_PAUSE = 0.2
LONGEST_PAUSE = 10.0
_BUSY = {"TooManyRequestsException", "ServiceException", "ThrottlingException"}


class InvokeError(Exception):
    """A worker cannot be invoked. The message is one line."""

    fatal = True


class FunctionMissing(InvokeError):
    """There is no function of that name."""


class InvokeDenied(InvokeError):
    """The caller may not invoke the function, or has no valid credentials."""


class InvokeUnavailable(InvokeError):
    """Throttled or out of service after every attempt: another time it may work."""

    fatal = False


def lambda_client(*, pool: int = 32, read_timeout: float = 60, region: str | None = None) -> Any:
    """A Lambda client that never repeats a request by itself.

    boto3's own repetition of a synchronous invocation after a read time-out would run the function
    again; `LambdaInvoker` repeats what is safe to repeat.
    """
    config = Config(
        max_pool_connections=pool,
        retries={"mode": "standard", "total_max_attempts": 1},
        connect_timeout=5,
        read_timeout=read_timeout,
        tcp_keepalive=True,
    )
    session = botocore.session.get_session()
    try:
        return session.create_client("lambda", region_name=region, config=config)
    except NoRegionError:
        return session.create_client("lambda", region_name=DEFAULT_REGION, config=config)
    except ValueError as exc:  # botocore's word for an endpoint that is no URL
        text = f"{exc}: AWS_ENDPOINT_URL_LAMBDA must be a URL or not be set"
        raise InvokeUnavailable(text) from exc


class LambdaInvoker:
    """Invokes one worker function (implements `coordinator.ports.Invoker`).

    Parameters
    ----------
    client : Lambda client (`lambda_client`), its pool at least `threads`
    function : name or ARN
    threads : invocations under way at once
    attempts : tries per invocation, the first included
    jitter : gives numbers in [0, 1), by which pauses are spread
    checked : the function is known to be there, `check` need not ask
    now : seconds since 1970
    """

    def __init__(
        self,
        client: Any,
        function: str,
        *,
        threads: int = 32,
        attempts: int = ATTEMPTS,
        jitter: Callable[[], float] = random.random,
        checked: bool = False,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._function = function
        self._threads = threads
        self._attempts = attempts
        self._jitter = jitter
        self._checked = checked
        self._now = now
        self._reports: queue.SimpleQueue[InvokeReport] = queue.SimpleQueue()
        self._closed = threading.Event()
        self._pool: ThreadPoolExecutor | None = None
        self._refused: InvokeError | None = None

    def check(self) -> None:
        """DryRun, once: the function is there and may be invoked. Raises `InvokeError`."""
        if not self._checked:
            self._call("DryRun", b"{}")
            self._checked = True

    def submit(self, tasks: Sequence[Invocation]) -> None:
        """Begin to invoke `tasks`; `reports` tells what became of them."""
        if self._closed.is_set():
            raise RuntimeError("this invoker is closed: make a new one")
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="invoke")
        for task in tasks:
            self._pool.submit(self._invoke, task)

    def reports(self) -> list[InvokeReport]:
        """Reports of the invocations that ended since the last call, in the order they ended."""
        found = []
        while True:
            try:
                found.append(self._reports.get_nowait())
            except queue.Empty:
                return found

    def close(self) -> None:
        """Drop what has not begun, wait for what has."""
        self._closed.set()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def _invoke(self, task: Invocation) -> None:
        error: InvokeError | None = self._refused
        if error is None:
            event = {**task.to_event(), "sent": round(self._now(), 3)}
            try:
                self._call("Event", json.dumps(event, separators=(",", ":")).encode())
            except InvokeError as exc:
                error = exc
                if exc.fatal:  # the same answer awaits all the others
                    self._refused = exc
        if error is None:
            self._reports.put(InvokeReport(task.worker, task.attempt))
        else:
            kind = type(error).__name__
            report = InvokeReport(task.worker, task.attempt, kind, str(error), error.fatal)
            self._reports.put(report)

    def ask(self, event: Mapping[str, Any]) -> Any:
        """Invoke the function and wait for its answer, which is JSON.

        Throttling is tried again; a request whose answer was lost is not, because it would run the
        function once more. Raises `InvokeError`, also for a function that raised or was ended.
        """
        payload = json.dumps(event, separators=(",", ":")).encode()
        response = self._call("RequestResponse", payload)
        body = response["Payload"].read()
        if response.get("FunctionError"):
            said = body[:200].decode(errors="replace")
            raise InvokeUnavailable(f"function {self._function!r} failed: {said}")
        try:
            return json.loads(body)
        except ValueError as exc:
            raise InvokeUnavailable(f"function {self._function!r} answered no JSON") from exc

    def _call(self, kind: str, payload: bytes) -> Any:
        for attempt in range(1, self._attempts + 1):
            try:
                return self._client.invoke(
                    FunctionName=self._function, InvocationType=kind, Payload=payload
                )
            except (ClientError, BotoCoreError) as exc:
                error = self._translate(exc)
                asked = _retry_after(exc)
                lost = isinstance(exc, BotoCoreError) and kind == "RequestResponse"
            longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt - 1))
            pause = max(asked, longest * (0.5 + 0.5 * self._jitter()))
            if error.fatal or lost or attempt == self._attempts or self._closed.wait(pause):
                raise error
        raise InvokeUnavailable(f"attempts must be at least 1, got {self._attempts}")

    def _translate(self, exc: ClientError | BotoCoreError) -> InvokeError:
        name = self._function
        if isinstance(exc, NoCredentialsError):
            return InvokeDenied(
                "no AWS credentials to invoke the worker: set AWS_PROFILE, or AWS_ACCESS_KEY_ID "
                "and AWS_SECRET_ACCESS_KEY"
            )
        if isinstance(exc, BotoCoreError):
            return InvokeUnavailable(f"function {name!r} cannot be reached: {exc}")
        code = str(exc.response.get("Error", {}).get("Code", ""))
        said = str(exc.response.get("Error", {}).get("Message", ""))
        status = int(exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        if code == "ResourceNotFoundException" or status == 404:
            return FunctionMissing(
                f"function {name!r} does not exist (or not in this region): deploy the stack, or "
                "check POLARLAMBDA_WORKER"
            )
        if code in _BUSY or status == 429 or status >= 500:
            return InvokeUnavailable(f"function {name!r} cannot be invoked now ({code}): {said}")
        return InvokeDenied(f"function {name!r} cannot be invoked ({code}): {said}")


def _retry_after(exc: ClientError | BotoCoreError) -> float:
    if not isinstance(exc, ClientError):
        return 0.0
    headers = exc.response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    try:
        return min(60.0, max(0.0, float(headers.get("retry-after", 0))))
    except ValueError:  # a date: the pauses of our own are long enough
        return 0.0
