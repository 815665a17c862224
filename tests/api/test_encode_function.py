"""How the encode function is called: what is made again, and what ends it."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from encoder.fanout import CallFailed
from polarlambda.encode_function import FunctionCaller, function_room
from polarlambda.errors import BadInput, PlatformError


def refusal(status: int) -> ClientError:
    answer = {"Error": {"Code": "X"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "Invoke")  # type: ignore[arg-type]


class Client:
    """Answers with what it is given, in turn."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.events: list[Any] = []

    def invoke(self, FunctionName: str, Payload: bytes) -> dict[str, Any]:
        self.events.append(json.loads(Payload))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def said(payload: Any, **more: str) -> dict[str, Any]:
    return {"Payload": io.BytesIO(json.dumps(payload).encode()), **more}


def call(*answers: Any) -> tuple[Any, list[float], Client]:
    pauses: list[float] = []
    client = Client(*answers)
    caller = FunctionCaller(client, "f", pause=pauses.append, jitter=lambda: 1.0)
    return caller.call({"version": 1}), pauses, client


def test_throttled_calls_wait_longer_each_time() -> None:
    answer, pauses, client = call(*[refusal(429)] * 8, said({"state": "done"}))
    assert answer == {"state": "done"}
    assert pauses == [0.5, 1, 2, 4, 8, 16, 20, 20]
    assert client.events == [{"version": 1}] * 9


@pytest.mark.parametrize(
    "answer",
    [
        refusal(500),
        refusal(503),
        ReadTimeoutError(endpoint_url="x"),
        said({"errorType": "Sandbox.Timedout", "errorMessage": "x"}, FunctionError="Unhandled"),
        {"Payload": io.BytesIO(b"cut")},
    ],
)
def test_what_dies_or_is_not_heard_of_may_be_called_again(answer: Any) -> None:
    with pytest.raises(CallFailed):
        call(answer)


def test_endless_throttling_ends() -> None:
    with pytest.raises(CallFailed):
        call(*[refusal(429)] * 12)


@pytest.mark.parametrize(
    ("answer", "error"),
    [(refusal(404), BadInput), (refusal(403), PlatformError), (said([1]), PlatformError)],
)
def test_what_no_other_call_mends_ends_it(answer: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call(answer)


def test_the_room_of_a_function_that_may_not_be_looked_at_is_the_templates() -> None:
    class Looked(Client):
        def get_function_configuration(self, FunctionName: str) -> Any:
            return self.invoke(FunctionName, b"{}")

    assert function_room(Looked(refusal(403)), "f") == (3008 << 20, 512 << 20)
    found = {"MemorySize": 1024, "EphemeralStorage": {"Size": 2048}}
    assert function_room(Looked(found), "f") == (1024 << 20, 2048 << 20)
    with pytest.raises(BadInput, match="POLARLAMBDA_ENCODE"):
        function_room(Looked(refusal(404)), "f")
    with pytest.raises(PlatformError):
        function_room(Looked(refusal(500)), "f")
