"""The deployed function that encodes: its limits, and calls of it that are made again."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from polarlambda.connect import ANSWER_SECONDS
from polarlambda.errors import BadInput, PlatformError

if TYPE_CHECKING:
    from blockstore.bucket import Bucket
    from encoder.fanout import RemoteEngine
    from encoder.progress import Listener

CONCURRENCY = 200  # calls under way at once, a thread waiting for each
THROTTLED_ATTEMPTS = 12
FIRST_PAUSE = 0.5
LONGEST_PAUSE = 20.0
# What template.yaml deploys unless told otherwise.
DEPLOYED_MEMORY_MB = 3008
DEPLOYED_DISK_MB = 512


def remote_engine(bucket: Bucket, function: str, progress: Listener | None) -> RemoteEngine:
    """Both passes of the encoder in the function of that name.

    Raises `BadInput` if there is no such function, `PlatformError` if it may not be looked at.
    """
    from coordinator.invoker import lambda_client
    from encoder.fanout import RemoteEngine

    client = lambda_client(pool=CONCURRENCY, read_timeout=ANSWER_SECONDS)
    memory, disk = function_room(client, function)
    return RemoteEngine(
        bucket,
        FunctionCaller(client, function),
        memory=memory,
        disk=disk,
        concurrency=CONCURRENCY,
        progress=progress,
    )


def function_room(client: Any, function: str) -> tuple[int, int]:
    """Bytes of the function's memory and disk; the template's if the caller may not ask."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        found = client.get_function_configuration(FunctionName=function)
    except (ClientError, BotoCoreError) as error:
        status = _status(error)
        if status == 404:
            raise _missing(function) from error
        if status != 403:
            raise PlatformError(f"the encode function {function!r}: {error}") from error
        found = {"MemorySize": DEPLOYED_MEMORY_MB}
    disk = found.get("EphemeralStorage", {}).get("Size", DEPLOYED_DISK_MB)
    return int(found["MemorySize"]) << 20, int(disk) << 20


class FunctionCaller:
    """Calls a function and waits for its answer (implements `encoder.fanout.Caller`)."""

    def __init__(
        self,
        client: Any,
        function: str,
        *,
        pause: Callable[[float], None] = time.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._function = function
        self._pause = pause
        self._jitter = jitter

    def call(self, event: dict[str, Any]) -> dict[str, Any]:
        """What the function returns; throttled calls wait and are made again.

        Raises `CallFailed` when it died, timed out or was not heard of, `BadInput` when there is no
        such function, `PlatformError` when it may not be called.
        """
        from botocore.exceptions import BotoCoreError, ClientError

        from encoder.fanout import CallFailed

        name, body = self._function, json.dumps(event, separators=(",", ":")).encode()
        for attempt in range(1, THROTTLED_ATTEMPTS + 1):
            try:
                response = self._client.invoke(FunctionName=name, Payload=body)
                payload = json.loads(response["Payload"].read())
                break
            except (ClientError, BotoCoreError, ValueError) as error:
                self._judge(error, attempt)
            longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt - 1))
            self._pause(longest * (0.5 + 0.5 * self._jitter()))
        if "FunctionError" in response:
            kind, text = payload.get("errorType", "error"), payload.get("errorMessage")
            raise CallFailed(f"the encode function {name!r} failed: {kind}: {text}")
        if not isinstance(payload, dict):
            raise PlatformError(f"the encode function {name!r} answered {payload!r}")
        return payload

    def _judge(self, error: Exception, attempt: int) -> None:
        """Return if the call was throttled and may be made again, else raise."""
        from encoder.fanout import CallFailed

        name, status = self._function, _status(error)
        if status == 404:
            raise _missing(name) from error
        if status == 429 and attempt < THROTTLED_ATTEMPTS:
            return
        if status == 0 or status == 429 or status >= 500:
            raise CallFailed(f"the encode function {name!r} gave no answer: {error}") from error
        raise PlatformError(f"the encode function {name!r} cannot be called: {error}") from error


def _status(error: Exception) -> int:
    answer = getattr(error, "response", None) or {}
    return int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _missing(function: str) -> BadInput:
    return BadInput(
        f"the encode function {function!r} does not exist (or not in this region): deploy the "
        "stack, check POLARLAMBDA_ENCODE, or encode on this machine (--on local)"
    )
