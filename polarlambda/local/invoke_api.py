"""The Lambda API that clients see: Invoke and the function's configuration, with Lambda's limits
and errors.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from typing import Any

from polarlambda.local.http import Request, Response, json_response
from polarlambda.local.invoker import Finished, Invoker, Job
from polarlambda.local.pool import EnvironmentPool
from polarlambda.local.template import ACCOUNT, REGION

SYNCHRONOUS_LIMIT = 6 << 20  # bytes of payload
ASYNCHRONOUS_LIMIT = 1 << 20
_PATH = re.compile(
    r"^/2015-03-31/functions/(?P<name>[^/]+)(?:/(?P<what>invocations|configuration))?/?$"
)
_NAME = re.compile(
    r"^(?:arn:[^:]+:lambda:[^:]+:\d{12}:function:|(?:\d{12}:)?function:|\d{12}:)?"
    r"(?P<name>[A-Za-z0-9_-]{1,140})(?::(?P<qualifier>[$\w-]+))?$"
)


class ApiError(Exception):
    """An error of the service, as ``status`` and the exception's name that boto3 raises."""

    def __init__(self, status: int, code: str, message: str, **extra: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.extra = extra

    def response(self) -> Response:
        """What boto3 turns into the exception called ``code``."""
        owner = "User" if self.status < 500 else "Service"
        key = "Message" if self.code == "ResourceNotFoundException" else "message"
        body = {"Type": owner, key: str(self), **self.extra}
        return json_response(self.status, body, {"x-amzn-ErrorType": self.code})


class InvokeApi:
    """Requests of clients to `Invoker`; ``pools`` by the function's name."""

    def __init__(self, pools: dict[str, EnvironmentPool], invoker: Invoker) -> None:
        self._pools = pools
        self._invoker = invoker

    async def handle(self, request: Request) -> Response:
        """Answer one request, errors included."""
        try:
            match = _PATH.match(request.path)
            if match is None:
                raise ApiError(404, "UnknownOperationException", f"no operation {request.path}")
            pool = self._pool(match["name"], request.query.get("Qualifier"))
            if request.method == "POST" and match["what"] == "invocations":
                response = await self._invoke(pool, request)
            elif request.method == "GET" and match["what"] == "configuration":
                response = json_response(200, _configuration(pool))
            elif request.method == "GET" and match["what"] is None:
                response = json_response(200, {"Configuration": _configuration(pool)})
            else:
                raise ApiError(404, "UnknownOperationException", f"no operation {request.path}")
        except ApiError as error:
            response = error.response()
        response.headers.setdefault("x-amzn-RequestId", str(uuid.uuid4()))
        return response

    def _pool(self, given: str, qualifier: str | None) -> EnvironmentPool:
        match = _NAME.match(given)
        if match is None:
            raise ApiError(400, "ValidationException", f"{given!r} is not a function's name or ARN")
        name, version = match["name"], match["qualifier"] or qualifier or "$LATEST"
        if name not in self._pools or version != "$LATEST":
            arn = f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}"
            arn += "" if version == "$LATEST" else f":{version}"
            raise ApiError(404, "ResourceNotFoundException", f"Function not found: {arn}")
        return self._pools[name]

    async def _invoke(self, pool: EnvironmentPool, request: Request) -> Response:
        kind = request.headers.get("x-amz-invocation-type", "RequestResponse")
        if kind not in ("RequestResponse", "Event", "DryRun"):
            raise ApiError(
                400,
                "InvalidParameterValueException",
                f"InvocationType {kind!r} is not RequestResponse, Event or DryRun",
            )
        event = _parse(request.body, kind)
        if kind == "DryRun":
            return Response(204)
        if self._invoker.chaos.throttled(event):
            raise _throttled("CallerRateLimitExceeded")
        context = _client_context(request.headers.get("x-amz-client-context"))
        job = Job(pool, request.body or b"{}", event, context)
        if kind == "Event":
            self._invoker.enqueue(job)
            return Response(202, b"", {"x-amzn-RequestId": job.request_id})
        finished = await self._invoker.invoke(job)
        if isinstance(finished, str):
            raise _throttled(finished)
        tail = request.headers.get("x-amz-log-type") == "Tail"
        return _answer(finished, job.request_id, tail=tail)


def _parse(body: bytes, kind: str) -> Any:
    """The event, after the checks of size and form."""
    if len(body) > SYNCHRONOUS_LIMIT:
        raise ApiError(
            413,
            "RequestTooLargeException",
            f"Request must be smaller than {SYNCHRONOUS_LIMIT} bytes "
            "for the InvokeFunction operation",
        )
    if kind == "Event" and len(body) > ASYNCHRONOUS_LIMIT:
        raise ApiError(
            413,
            "RequestTooLargeException",
            f"{len(body)} byte payload is too large for the Event invocation type "
            f"(limit {ASYNCHRONOUS_LIMIT} bytes)",
        )
    try:
        return json.loads(body or b"{}", parse_constant=_refuse_constant)
    except ValueError as error:
        raise ApiError(
            400,
            "InvalidRequestContentException",
            f"Could not parse request body into json: {error}",
        ) from None


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _client_context(header: str | None) -> str | None:
    if header is None:
        return None
    try:
        return base64.b64decode(header, validate=True).decode()
    except ValueError:
        raise ApiError(
            400,
            "InvalidRequestContentException",
            "Client context must be base64 of a JSON object",
        ) from None


def _throttled(reason: str) -> ApiError:
    return ApiError(429, "TooManyRequestsException", "Rate Exceeded.", Reason=reason)


def _answer(finished: Finished, request_id: str, *, tail: bool) -> Response:
    headers = {
        "Content-Type": "application/json",
        "X-Amz-Executed-Version": "$LATEST",
        "x-amzn-RequestId": request_id,
    }
    if finished.outcome.error_type is not None:
        headers["X-Amz-Function-Error"] = "Unhandled"
    if tail:
        headers["X-Amz-Log-Result"] = base64.b64encode(finished.log_tail).decode()
    return Response(200, finished.outcome.payload, headers)


def _configuration(pool: EnvironmentPool) -> dict[str, Any]:
    function = pool.function
    return {
        "FunctionName": function.name,
        "FunctionArn": function.arn,
        "Runtime": function.runtime,
        "Handler": function.handler,
        "MemorySize": function.memory,
        "Timeout": int(function.timeout),
        "Version": "$LATEST",
        "State": "Active",
        "Environment": {"Variables": function.environment},
    }
