"""Execution environments: reuse, limits, deaths, isolation."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from polarlambda.local import LocalStack
from tests.local.waiting import runs, wait_until


def invoke(client: Any, event: Any, function: str = "WorkerFunction") -> Any:
    response = client.invoke(FunctionName=function, Payload=json.dumps(event))
    return json.loads(response["Payload"].read())


def last(stack: LocalStack, function: str = "WorkerFunction") -> Any:
    return [record for record in stack.invocations() if record.function == function][-1]


@contextmanager
def busy(client: Any, function: str, end: Path, count: int) -> Iterator[None]:
    """``count`` invocations of ``function`` that run as long as the block does."""
    with ThreadPoolExecutor(count) as threads:
        for _ in range(count):
            threads.submit(invoke, client, {"do": "wait", "file": str(end)}, function)
        try:
            yield
        finally:
            end.touch()


def test_an_environment_is_reused_warm(client: Any, toy: LocalStack) -> None:
    invoke(client, {"do": "exit", "status": 0}, "QuickFunction")  # whatever was idle is gone
    first = invoke(client, {"do": "describe"}, "QuickFunction")
    cold = last(toy, "QuickFunction")
    second = invoke(client, {"do": "describe"}, "QuickFunction")
    warm = last(toy, "QuickFunction")
    assert second["environment"] == first["environment"]
    assert (first["calls"], second["calls"]) == (1, 2)
    assert (cold.cold, warm.cold) == (True, False)
    assert cold.init_ms > 0 and cold.billed_ms >= cold.init_ms + cold.duration_ms
    assert warm.init_ms == 0 and warm.duration_ms <= warm.billed_ms < warm.duration_ms + 1


def test_concurrent_invocations_have_environments_of_their_own(client: Any) -> None:
    event = {"do": "sleep", "seconds": 0.3}
    with ThreadPoolExecutor(4) as threads:
        futures = [threads.submit(invoke, client, event) for _ in range(4)]
        assert [future.result() for future in futures] == [event] * 4


def test_what_a_handler_sees(client: Any, toy: LocalStack) -> None:
    seen = invoke(client, {"do": "describe"})
    environ = seen["environ"]
    arn = "arn:aws:lambda:us-east-1:123456789012:function:"
    assert environ["BUCKET"] == toy.bucket == "polarlambda-local-toy"
    assert environ["OTHER"] == arn + "LimitedFunction"
    assert environ["AWS_LAMBDA_FUNCTION_NAME"] == "WorkerFunction"
    assert environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"] == "192"
    assert environ["AWS_ENDPOINT_URL_S3"] == toy.endpoint_s3
    assert environ["AWS_ENDPOINT_URL_LAMBDA"] == toy.endpoint_lambda
    assert seen["arn"] == arn + "WorkerFunction"
    assert int(seen["memory"]) == 192
    assert 0 < seen["remaining"] <= 60_000


def test_nothing_of_the_tests_environment_leaks_in(client: Any) -> None:
    """Neither variables nor installed packages: a dependency that an artifact lacks is missed."""
    seen = invoke(client, {"do": "describe"})
    assert "PYTEST_CURRENT_TEST" in os.environ and "PYTEST_CURRENT_TEST" not in seen["environ"]
    assert "awslambdaric" in seen["modules"] and "pytest" not in seen["modules"]
    assert not any("site-packages" in folder for folder in seen["path"])


def test_time_limit(client: Any, toy: LocalStack) -> None:
    before = invoke(client, {"do": "describe"}, "QuickFunction")
    response = client.invoke(
        FunctionName="QuickFunction", Payload=json.dumps({"do": "sleep", "seconds": 600})
    )
    answer = json.loads(response["Payload"].read())
    assert response["FunctionError"] == "Unhandled"
    assert answer["errorMessage"].endswith("Error: Task timed out after 1.00 seconds")
    record = last(toy, "QuickFunction")
    assert (record.outcome, record.duration_ms) == ("timeout", 1000)
    assert "Task timed out after 1.00 seconds" in toy.logs("QuickFunction")
    assert not runs(before["pid"])
    after = invoke(client, {"do": "describe"}, "QuickFunction")
    assert after["environment"] != before["environment"]


def test_memory_limit(client: Any, toy: LocalStack) -> None:
    invoke(client, {"do": "allocate", "megabytes": 60})
    assert last(toy).outcome == "answered"
    assert 60 << 20 < last(toy).peak_memory < 192 << 20
    response = client.invoke(
        FunctionName="WorkerFunction", Payload=json.dumps({"do": "allocate", "megabytes": 200})
    )
    answer = json.loads(response["Payload"].read())
    assert response["FunctionError"] == "Unhandled"
    assert answer["errorType"] == "Runtime.ExitError"
    assert answer["errorMessage"].endswith("Error: Runtime exited with error: signal: killed")
    record = last(toy)
    assert (record.outcome, record.memory_mb) == ("memory", 192)
    assert record.peak_memory > 192 << 20
    assert invoke(client, {"after": 1}) == {"after": 1}


@pytest.mark.parametrize("status", [0, 3])
def test_a_process_that_exits(client: Any, toy: LocalStack, status: int) -> None:
    answer = invoke(client, {"do": "exit", "status": status})
    assert answer["errorType"] == "Runtime.ExitError"
    assert answer["errorMessage"].endswith(f"Runtime exited with error: exit status {status}")
    assert last(toy).outcome == "exit"


def test_what_a_handler_starts_dies_with_its_environment(client: Any) -> None:
    for end in ({"do": "exit", "status": 1}, {"do": "sleep", "seconds": 600}):
        pids = invoke(client, {"do": "fork"}, "QuickFunction")
        assert runs(pids["child"])
        invoke(client, end, "QuickFunction")
        wait_until(lambda child=pids["child"]: not runs(child))


def test_reserved_concurrency_throttles(client: Any, toy: LocalStack, tmp_path: Path) -> None:
    with busy(client, "LimitedFunction", tmp_path / "end", count=2):
        wait_until(lambda: toy.activity()["running"] == 2)
        with pytest.raises(ClientError) as caught:
            client.invoke(FunctionName="LimitedFunction", Payload=b"{}")
        error = caught.value.response
        assert error["ResponseMetadata"]["HTTPStatusCode"] == 429
        assert error["Error"]["Code"] == "TooManyRequestsException"
        assert error["Reason"] == "ReservedFunctionConcurrentInvocationLimitExceeded"
        assert invoke(client, {"free": 1}) == {"free": 1}  # the other functions' share is theirs
    assert invoke(client, {"free": 2}, "LimitedFunction") == {"free": 2}


def test_events_beyond_the_concurrency_wait_for_their_turn(client: Any, toy: LocalStack) -> None:
    for worker in range(5):
        event = {"do": "sleep", "seconds": 0.05, "run": "turns", "worker": worker}
        client.invoke(
            FunctionName="LimitedFunction", InvocationType="Event", Payload=json.dumps(event)
        )
    wait_until(lambda: toy.activity() == {"queued": 0, "running": 0, "sleeping": 0})
    records = [record for record in toy.invocations() if record.run == "turns"]
    assert sorted(record.worker for record in records) == [0, 1, 2, 3, 4]
    for record in records:
        others = [o for o in records if o.started <= record.started < o.ended]
        assert len(others) <= 2


def test_failed_events_are_tried_again_as_the_template_says(client: Any, toy: LocalStack) -> None:
    for function, run in (("WorkerFunction", "once"), ("QuickFunction", "twice")):
        event = {"do": "raise", "run": run, "worker": 0}
        client.invoke(FunctionName=function, InvocationType="Event", Payload=json.dumps(event))
    wait_until(lambda: toy.activity() == {"queued": 0, "running": 0, "sleeping": 0})
    deliveries = {
        run: [record.delivery for record in toy.invocations() if record.run == run]
        for run in ("once", "twice")
    }
    assert deliveries == {"once": [1], "twice": [1, 2]}
    ids = {record.request_id for record in toy.invocations() if record.run == "twice"}
    assert len(ids) == 1


def test_an_event_that_waited_too_long_is_dropped(client: Any, toy: LocalStack) -> None:
    event = {"run": "old", "worker": 1}
    client.invoke(FunctionName="BrokenFunction", InvocationType="Event", Payload=json.dumps(event))
    wait_until(lambda: any(record.run == "old" for record in toy.invocations()))
    records = [record for record in toy.invocations() if record.run == "old"]
    assert [(record.outcome, record.billed_ms) for record in records] == [("expired", 0)]


def test_account_concurrency_throttles(toy_project: Any, new_client: Any, tmp_path: Path) -> None:
    with LocalStack(template=toy_project / "one.yaml", account_concurrency=1) as stack:
        client = new_client(stack)
        with busy(client, "WorkerFunction", tmp_path / "end", count=1):
            wait_until(lambda: stack.activity()["running"] == 1)
            with pytest.raises(ClientError, match="TooManyRequests") as caught:
                client.invoke(FunctionName="WorkerFunction", Payload=b"{}")
        assert caught.value.response["Reason"] == "ConcurrentInvocationLimitExceeded"


def test_spawned_environments_share_nothing(toy_project: Any, new_client: Any) -> None:
    with LocalStack(template=toy_project / "one.yaml", spawn=True) as stack:
        seen = invoke(new_client(stack), {"do": "describe"})
    assert "boto3" not in seen["modules"] and "awslambdaric" in seen["modules"]
