"""The invoker against a client that answers as Lambda does."""

from __future__ import annotations

import json
import threading
import time

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError

from blockstore import keys
from blockstore.tasks import WorkerTask
from coordinator import invoker as module
from coordinator.invoker import (
    FunctionMissing,
    InvokeDenied,
    InvokeUnavailable,
    LambdaInvoker,
    lambda_client,
)
from tests.coordinator.fake_platform import Platform

RUN = keys.new_run_id(1_700_000_000_000, bytes(10))


def answer(code: str, status: int, headers: dict[str, str] | None = None) -> ClientError:
    response = {
        "Error": {"Code": code, "Message": "said so"},
        "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": headers or {}},
    }
    return ClientError(response, "Invoke")


THROTTLED = answer("TooManyRequestsException", 429)


class Client:
    """`script[worker]` is what the first invocations of a worker are answered; then 202."""

    def __init__(self, script=None, always=None):
        self.script = script or {}
        self.always = always
        self.calls: list[tuple[str, dict]] = []
        self._lock = threading.Lock()

    def invoke(self, FunctionName, InvocationType, Payload):
        event = json.loads(Payload)
        with self._lock:
            self.calls.append((InvocationType, event))
            script = self.script.get(event.get("worker"), [])
            error = self.always or (script.pop(0) if script else None)
        if error is not None:
            raise error
        return {"StatusCode": 202}


def tasks(count: int) -> list[WorkerTask]:
    manifest = Platform().manifest
    return [
        WorkerTask.of(
            manifest,
            run=RUN,
            attempt=1,
            worker=worker,
            x_shape=(9,),
            x_dtype="<f4",
            x_digest="sha256:0",
        )
        for worker in range(count)
    ]


def collect(invoker: LambdaInvoker, count: int):
    reports = []
    until = time.monotonic() + 20
    while len(reports) < count and time.monotonic() < until:
        reports += invoker.reports()
        time.sleep(0.002)
    return reports


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch):
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(module, "LONGEST_PAUSE", 0.002)


def test_every_worker_is_invoked_once_asynchronously_with_a_small_event():
    client = Client()
    invoker = LambdaInvoker(client, "worker", threads=4)
    invoker.submit(tasks(16))
    reports = collect(invoker, 16)
    invoker.close()
    assert sorted(r.worker for r in reports) == list(range(16))
    assert all(r.kind == "" and r.attempt == 1 for r in reports)
    assert {kind for kind, _ in client.calls} == {"Event"} and len(client.calls) == 16
    assert WorkerTask.from_event(client.calls[0][1]).run == RUN


def test_an_event_says_when_it_was_first_sent():
    client = Client(script={0: [THROTTLED, THROTTLED]})
    times = iter([1_800_000_000.1234, 1_800_000_009.0])
    invoker = LambdaInvoker(client, "worker", threads=1, now=lambda: next(times))
    invoker.submit(tasks(2))
    assert len(collect(invoker, 2)) == 2
    invoker.close()
    sent = [(event["worker"], event["sent"]) for _, event in client.calls]
    assert sent == [(0, 1_800_000_000.123)] * 3 + [(1, 1_800_000_009.0)]


def test_throttling_and_outages_are_tried_again():
    busy = [THROTTLED, answer("ServiceException", 500), EndpointConnectionError(endpoint_url="x")]
    client = Client({1: busy})
    invoker = LambdaInvoker(client, "worker", threads=4)
    invoker.submit(tasks(3))
    reports = collect(invoker, 3)
    invoker.close()
    assert all(r.kind == "" for r in reports) and len(client.calls) == 6


def test_what_stays_throttled_is_an_erasure():
    client = Client({2: [THROTTLED] * 20})
    invoker = LambdaInvoker(client, "worker", threads=4, attempts=5)
    invoker.submit(tasks(4))
    (failed,) = [r for r in collect(invoker, 4) if r.kind]
    invoker.close()
    assert (failed.worker, failed.kind, failed.fatal) == (2, "InvokeUnavailable", False)
    assert len([1 for _, event in client.calls if event["worker"] == 2]) == 5


def test_pauses_grow_are_spread_and_respect_retry_after(monkeypatch):
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.2)
    monkeypatch.setattr(module, "LONGEST_PAUSE", 1.0)
    waits = []
    hinted = answer("TooManyRequestsException", 429, {"retry-after": "3"})
    client = Client({None: [THROTTLED] * 4 + [hinted]})
    invoker = LambdaInvoker(client, "worker", jitter=lambda: 0.5)
    monkeypatch.setattr(invoker._closed, "wait", lambda seconds: waits.append(seconds))
    invoker.check()
    assert waits == pytest.approx([0.15, 0.3, 0.6, 0.75, 3.0])


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (answer("ResourceNotFoundException", 404), FunctionMissing),
        (answer("AccessDeniedException", 403), InvokeDenied),
        (NoCredentialsError(), InvokeDenied),
        (THROTTLED, InvokeUnavailable),
    ],
)
def test_check_is_a_dry_run_with_typed_one_line_errors(error, kind):
    client = Client(always=error)
    with pytest.raises(kind) as caught:
        LambdaInvoker(client, "worker", attempts=2).check()
    assert "\n" not in str(caught.value)
    assert {call for call, _ in client.calls} == {"DryRun"}


def test_a_refusal_is_not_repeated_for_the_other_workers():
    client = Client(always=answer("ResourceNotFoundException", 404))
    invoker = LambdaInvoker(client, "worker", threads=1)
    invoker.submit(tasks(50))
    reports = collect(invoker, 50)
    invoker.close()
    assert {r.kind for r in reports} == {"FunctionMissing"} and all(r.fatal for r in reports)
    assert len(client.calls) == 1


def test_close_drops_what_has_not_begun_and_ends_pauses(monkeypatch):
    monkeypatch.setattr(module, "FIRST_PAUSE", 60.0)
    monkeypatch.setattr(module, "LONGEST_PAUSE", 60.0)
    client = Client(always=THROTTLED)
    invoker = LambdaInvoker(client, "worker", threads=2)
    invoker.submit(tasks(40))
    while len(client.calls) < 2:
        time.sleep(0.001)
    began = time.monotonic()
    invoker.close()
    assert time.monotonic() - began < 30 and len(client.calls) <= 4
    with pytest.raises(RuntimeError, match="closed"):
        invoker.submit(tasks(1))


def test_the_client_never_repeats_a_request_by_itself(monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    client = lambda_client(pool=7, read_timeout=930)
    assert client.meta.config.retries["total_max_attempts"] == 1
    assert client.meta.config.max_pool_connections == 7
    assert client.meta.config.read_timeout == 930


def test_an_endpoint_that_is_no_url_is_named(monkeypatch):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", "nonsense")
    with pytest.raises(InvokeUnavailable, match="AWS_ENDPOINT_URL_LAMBDA must be a URL"):
        lambda_client()
