"""What clients of the Lambda API see, through unmodified boto3."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from polarlambda.local import LocalStack
from tests.local.waiting import wait_until


def invoke(client: Any, event: Any, function: str = "WorkerFunction", **options: Any) -> Any:
    response = client.invoke(FunctionName=function, Payload=json.dumps(event), **options)
    response["Answer"] = json.loads(response["Payload"].read())
    return response


def refusal(client: Any, **arguments: Any) -> tuple[int, str, str]:
    with pytest.raises(ClientError) as caught:
        client.invoke(**arguments)
    error = caught.value.response
    return error["ResponseMetadata"]["HTTPStatusCode"], error["Error"]["Code"], str(caught.value)


def test_a_synchronous_answer(client: Any) -> None:
    response = invoke(client, {"a": [1, 2.5, None, "ü"]})
    assert response["StatusCode"] == 200
    assert response["Answer"] == {"a": [1, 2.5, None, "ü"]}
    assert response["ExecutedVersion"] == "$LATEST"
    assert "FunctionError" not in response


def test_no_payload_is_an_empty_event(client: Any) -> None:
    assert json.loads(client.invoke(FunctionName="WorkerFunction")["Payload"].read()) == {}


@pytest.mark.parametrize(
    "name",
    [
        "WorkerFunction:$LATEST",
        "123456789012:function:WorkerFunction",
        "arn:aws:lambda:us-east-1:123456789012:function:WorkerFunction",
    ],
)
def test_a_function_has_several_names(client: Any, name: str) -> None:
    assert invoke(client, {"b": 1}, function=name)["Answer"] == {"b": 1}


def test_an_exception_of_the_handler_is_a_success_with_an_error_header(client: Any) -> None:
    response = invoke(client, {"do": "raise"})
    assert response["StatusCode"] == 200
    assert response["FunctionError"] == "Unhandled"
    assert response["Answer"]["errorType"] == "ValueError"
    assert response["Answer"]["errorMessage"] == "as the event asked"
    assert any("app.py" in line for line in response["Answer"]["stackTrace"])


def test_the_log_tail_holds_what_was_printed_and_the_report(client: Any) -> None:
    response = invoke(client, {"do": "print", "text": "from the handler"}, LogType="Tail")
    log = base64.b64decode(response["LogResult"]).decode()
    request = response["ResponseMetadata"]["RequestId"]
    assert log.startswith(f"START RequestId: {request} Version: $LATEST\nfrom the handler\n")
    assert f"END RequestId: {request}\nREPORT RequestId: {request}\tDuration: " in log
    assert "Memory Size: 192 MB\tMax Memory Used: " in log
    long = invoke(client, {"do": "print", "text": "x" * 9000}, LogType="Tail")
    assert len(base64.b64decode(long["LogResult"])) == 4096
    assert "LogResult" not in invoke(client, {})


def test_dry_run_runs_nothing(client: Any, toy: LocalStack) -> None:
    before = len(toy.invocations())
    response = client.invoke(FunctionName="WorkerFunction", InvocationType="DryRun")
    assert response["StatusCode"] == 204
    assert len(toy.invocations()) == before


def test_an_event_is_accepted_and_runs_later(client: Any, toy: LocalStack) -> None:
    response = client.invoke(
        FunctionName="WorkerFunction",
        InvocationType="Event",
        Payload=json.dumps({"run": "queued", "worker": 3}),
    )
    assert response["StatusCode"] == 202
    wait_until(lambda: toy.activity() == {"queued": 0, "running": 0, "sleeping": 0})
    (record,) = [i for i in toy.invocations() if i.run == "queued"]
    assert (record.worker, record.outcome, record.delivery) == (3, "answered", 1)
    assert record.request_id == response["ResponseMetadata"]["RequestId"]


def test_payload_that_is_not_json_is_refused(client: Any) -> None:
    for payload in (b"{", b"NaN", b"\xff"):
        status, code, _ = refusal(client, FunctionName="WorkerFunction", Payload=payload)
        assert (status, code) == (400, "InvalidRequestContentException")


def test_unknown_functions_and_versions_are_refused(client: Any) -> None:
    for name in ("Nobody", "WorkerFunction:7"):
        status, code, message = refusal(client, FunctionName=name)
        assert (status, code) == (404, "ResourceNotFoundException")
        assert "Function not found: arn:aws:lambda:us-east-1:123456789012:function:" in message


def test_unknown_invocation_type_is_refused(client: Any) -> None:
    status, code, _ = refusal(client, FunctionName="WorkerFunction", InvocationType="Soon")
    assert (status, code) == (400, "InvalidParameterValueException")


@pytest.mark.parametrize(("kind", "limit"), [("RequestResponse", 6 << 20), ("Event", 1 << 20)])
def test_payload_limits(client: Any, kind: str, limit: int) -> None:
    arguments = {"FunctionName": "WorkerFunction", "InvocationType": kind}
    fits = json.dumps("x" * (limit - 2))
    assert len(fits) == limit
    # the toy cannot take a string as its event; that it fails there shows that it arrived
    assert client.invoke(**arguments, Payload=fits)["StatusCode"] in (200, 202)
    status, code, _ = refusal(client, **arguments, Payload=fits + " ")
    assert (status, code) == (413, "RequestTooLargeException")


def test_answers_have_a_limit_too(client: Any) -> None:
    assert len(invoke(client, {"do": "answer", "bytes": 6 << 20})["Answer"]) == 6 << 20
    response = invoke(client, {"do": "answer", "bytes": (6 << 20) + 99})
    assert response["FunctionError"] == "Unhandled"
    assert response["Answer"]["errorType"] == "Function.ResponseSizeTooLarge"
    assert invoke(client, {"after": 1})["Answer"] == {"after": 1}


def test_client_context_reaches_the_handler(client: Any) -> None:
    context = base64.b64encode(json.dumps({"custom": {"k": "v"}}).encode()).decode()
    assert invoke(client, {"do": "describe"}, ClientContext=context)["Answer"]["client"] == {
        "k": "v"
    }


def test_configuration_is_that_of_the_template(client: Any) -> None:
    found = client.get_function_configuration(FunctionName="QuickFunction")
    assert (found["Handler"], found["MemorySize"], found["Timeout"]) == ("app.handler", 192, 1)


def test_module_that_cannot_be_imported_is_a_function_error(client: Any) -> None:
    response = invoke(client, {}, function="BrokenFunction")
    assert response["FunctionError"] == "Unhandled"
    assert response["Answer"]["errorType"] == "Runtime.ImportModuleError"
    assert "No module named 'missing'" in response["Answer"]["errorMessage"]
