"""The Lambda Runtime API (2018-06-01) of one environment: its process fetches events here and
answers.

One loopback port per environment, as awslambdaric knows no other way to say who it is.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from polarlambda.local import http

MAX_ANSWER = (6 << 20) + 100  # what Lambda lets a synchronous answer have
OVERSIZE = "Function.ResponseSizeTooLarge"
_PREFIX = "/2018-06-01/runtime/"


@dataclass(frozen=True)
class Call:
    """One invocation as the function sees it; ``deadline_ms`` is Unix time."""

    request_id: str
    payload: bytes
    function_arn: str
    deadline_ms: int
    client_context: str | None = None


@dataclass(frozen=True)
class Answer:
    """What the process posted; ``error_type`` is None for a result."""

    payload: bytes
    error_type: str | None = None


class RuntimeApi:
    """``initialised`` resolves when the process asks for its first event, or to its
    initialisation error.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.initialised: asyncio.Future[Answer | None] = loop.create_future()
        self._server: asyncio.Server | None = None
        self._event: asyncio.Future[Call] = loop.create_future()
        self._answer: asyncio.Future[Answer] = loop.create_future()
        self._current: Call | None = None

    async def start(self) -> str:
        """Listen; returns ``host:port``."""
        self._server = await http.serve(self._handle)
        return http.address(self._server)

    def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
        self._event.cancel()  # ends a pending request for the next event

    async def invoke(self, call: Call) -> Answer:
        """Hand ``call`` to the process and wait for its answer, however long that takes."""
        self._current = call
        self._answer = asyncio.get_running_loop().create_future()
        self._event.set_result(call)
        return await self._answer

    async def _handle(self, request: http.Request) -> http.Response:
        action = request.path.removeprefix(_PREFIX)
        if request.method == "GET" and action == "invocation/next":
            return await self._next()
        error_type = request.headers.get("lambda-runtime-function-error-type", "Unhandled")
        if request.method == "POST" and action == "init/error":
            if not self.initialised.done():
                self.initialised.set_result(Answer(request.body, error_type))
            return http.json_response(202, {"status": "OK"})
        parts = action.split("/")
        if request.method == "POST" and len(parts) == 3 and parts[0] == "invocation":
            return self._answered(parts[1], parts[2], request.body, error_type)
        return http.json_response(404, {"errorMessage": f"no such path: {request.path}"})

    async def _next(self) -> http.Response:
        if not self.initialised.done():
            self.initialised.set_result(None)
        try:
            call = await asyncio.shield(self._event)
        except asyncio.CancelledError:
            return http.json_response(500, {"errorMessage": "the environment is shutting down"})
        self._event = asyncio.get_running_loop().create_future()
        headers = {
            "Content-Type": "application/json",
            "Lambda-Runtime-Aws-Request-Id": call.request_id,
            "Lambda-Runtime-Deadline-Ms": str(call.deadline_ms),
            "Lambda-Runtime-Invoked-Function-Arn": call.function_arn,
        }
        if call.client_context is not None:
            headers["Lambda-Runtime-Client-Context"] = call.client_context
        return http.Response(200, call.payload, headers)

    def _answered(self, request_id: str, kind: str, body: bytes, error_type: str) -> http.Response:
        if self._current is None or self._current.request_id != request_id or self._answer.done():
            return http.json_response(
                400, {"errorType": "InvalidRequestID", "errorMessage": "Invalid request ID"}
            )
        if kind == "response" and len(body) > MAX_ANSWER:
            message = (
                f"Response payload size exceeded maximum allowed payload size ({MAX_ANSWER} bytes)."
            )
            response = http.json_response(413, {"errorType": OVERSIZE, "errorMessage": message})
            self._answer.set_result(Answer(response.body, OVERSIZE))
            return response
        self._answer.set_result(Answer(body, None if kind == "response" else error_type))
        return http.json_response(202, {"status": "OK"})
