"""Calling the deployed coordinator: one request each time, every kind of answer."""

from __future__ import annotations

import io
import json

import pytest
from botocore.exceptions import ReadTimeoutError

from polarlambda.connect import ANSWER_SECONDS, function_client
from polarlambda.deployed import call_coordinator
from polarlambda.errors import BadInput, PlatformError

LONGEST_FUNCTION = 900  # seconds


class Client:
    """Answers one invocation after the other; keeps the events."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.events = []

    def invoke(self, FunctionName, Payload):
        self.events.append(json.loads(Payload))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        error, payload = answer
        response = {"Payload": io.BytesIO(json.dumps(payload).encode())}
        return {**response, "FunctionError": "Unhandled"} if error else response


START = {"version": 1, "matrix": "a"}


def test_a_run_that_was_handed_over_is_resumed_until_it_ends():
    running = (False, {"state": "running", "run": "r"})
    client = Client(running, running, (False, {"state": "exact", "run": "r"}))
    assert call_coordinator(client, "c", START)["state"] == "exact"
    assert client.events == [START] + 2 * [{"version": 1, "resume": "r"}]


def test_a_refusal_is_bad_input_with_the_functions_reason():
    client = Client((False, {"state": "refused", "message": "x has NaN in row 3"}))
    with pytest.raises(BadInput, match="x has NaN in row 3"):
        call_coordinator(client, "c", START)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((True, {"errorType": "AccessDenied", "errorMessage": "no PutObject"}), "no PutObject"),
        ((False, None), "answered None"),
        ((False, ["exact"]), "answered"),
        (ReadTimeoutError(endpoint_url="http://lambda"), "no answer"),
    ],
)
def test_anything_else_is_the_platforms_failure_and_not_repeated(answer, words):
    client = Client(answer)
    with pytest.raises(PlatformError, match=words):
        call_coordinator(client, "c", START)
    assert len(client.events) == 1


def test_the_client_outwaits_every_function_and_repeats_nothing(monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    config = function_client().meta.config
    assert config.read_timeout == ANSWER_SECONDS > LONGEST_FUNCTION
    assert config.retries["total_max_attempts"] == 1
