"""The tree of invocations, its dispatch functions being the real handler behind a fake Lambda."""

from __future__ import annotations

import io
import json
import threading
import time
from collections import Counter
from dataclasses import replace

import pytest
from botocore.exceptions import ReadTimeoutError

from blockstore.tasks import WorkerTask
from coordinator import invoker as module
from coordinator.fan_out import DispatchEvent, DispatchRefused, make_invoker
from coordinator.invoker import LambdaInvoker
from coordinator.tree import parts
from functions.dispatch import app
from functions.dispatch.settings import DispatchSettings, SettingsError
from tests.coordinator.test_invoker import THROTTLED, answer, collect
from tests.coordinator.test_invoker import tasks as first_tasks
from tests.functions.coded_block import Context


def tasks(count):
    return [replace(task, workers=count) for task in first_tasks(count)]


class Cloud:
    """A worker function and a dispatch function. `trouble[n]` is what the n-th dispatch function
    that is invoked does: raise an error to the client, die after some of its workers, answer
    nonsense."""

    def __init__(self, trouble=None, workers=None):
        self.trouble = trouble or {}
        self.workers = workers or {}  # worker: errors that its first invocations are answered
        self.started: Counter[int] = Counter()
        self.events: list[WorkerTask] = []
        self.dispatches: list[bytes] = []
        self._lock = threading.Lock()

    def invoke(self, FunctionName, InvocationType, Payload):
        if FunctionName == "worker":
            return self._worker(json.loads(Payload))
        with self._lock:
            self.dispatches.append(Payload)
            trouble = self.trouble.get(len(self.dispatches) - 1)
        if isinstance(trouble, Exception):
            raise trouble
        event = json.loads(Payload)
        if trouble == "dies half-way":
            event = event | {"own": event["own"][: len(event["own"]) // 2]}
        found = app.handler(event, Context())
        if trouble == "dies half-way":
            return self._answer({"errorMessage": "timed out"}, FunctionError="Unhandled")
        return self._answer("nonsense" if trouble == "nonsense" else found)

    def _answer(self, value, **more):
        return {"StatusCode": 200, "Payload": io.BytesIO(json.dumps(value).encode()), **more}

    def _worker(self, event):
        with self._lock:
            script = self.workers.get(event["worker"], [])
            error = script.pop(0) if script else None
            if error is None:
                self.started[event["worker"]] += 1
                self.events.append(WorkerTask.from_event(event))
        if error is not None:
            raise error
        return {"StatusCode": 202}


@pytest.fixture
def cloud(monkeypatch):
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(module, "LONGEST_PAUSE", 0.002)
    made = Cloud()
    monkeypatch.setattr(app, "_connect", lambda: (DispatchSettings("worker"), made))
    return made


def tree(cloud, least=100, threads=4):
    return make_invoker(cloud, "worker", "dispatch", threads=threads, least=least)


def run(cloud, count, **options):
    invoker = tree(cloud, **options)
    sent = tasks(count)
    invoker.submit(sent)
    reports = collect(invoker, count)
    invoker.close()
    assert sorted(r.worker for r in reports) == list(range(count)), "one report for each"
    return sent, reports


def test_many_workers_are_invoked_by_few_calls_with_the_events_they_would_have_had(cloud):
    sent, reports = run(cloud, 512)
    assert len(cloud.dispatches) == 4 and all(r.kind == "" for r in reports)
    assert set(cloud.started.values()) == {1} and len(cloud.started) == 512
    assert sorted(cloud.events, key=lambda task: task.worker) == sent


def test_few_workers_are_invoked_directly(cloud):
    run(cloud, 99)
    assert not cloud.dispatches and len(cloud.started) == 99


def test_without_a_dispatch_function_everybody_is_invoked_directly(cloud):
    assert isinstance(make_invoker(cloud, "worker"), LambdaInvoker)


@pytest.mark.parametrize(
    "trouble",
    [
        "dies half-way",
        "nonsense",
        THROTTLED,
        answer("ServiceException", 500),
    ],
)
def test_a_dispatch_function_in_trouble_costs_duplicates_at_most(cloud, trouble):
    cloud.trouble = {1: trouble}
    _, reports = run(cloud, 512)
    assert all(r.kind == "" for r in reports)
    assert len(cloud.started) == 512, "nobody was left out"
    assert sum(cloud.started.values()) <= 512 + 128


def test_workers_that_a_dispatch_function_could_not_start_are_started_from_here(cloud):
    cloud.workers = {7: [THROTTLED] * module.ATTEMPTS}  # until the dispatch function gives up
    _, reports = run(cloud, 256)
    assert all(r.kind == "" for r in reports) and cloud.started[7] == 1


def test_a_lost_answer_does_not_run_the_dispatch_function_again(cloud):
    cloud.trouble = {0: ReadTimeoutError(endpoint_url="x")}
    run(cloud, 256, threads=1)
    assert len(cloud.dispatches) == 1 and len(cloud.started) == 256


def test_what_is_not_allowed_is_told_of_everybody(cloud):
    cloud.trouble = dict.fromkeys(range(4), answer("AccessDeniedException", 403))
    _, reports = run(cloud, 256)
    assert {(r.kind, r.fatal) for r in reports} == {("InvokeDenied", True)}
    assert not cloud.started


def test_a_worker_function_that_a_dispatch_function_may_not_invoke_is_told(cloud):
    denied = answer("AccessDeniedException", 403)
    cloud.workers = {worker: [denied] for worker in range(256)}
    _, reports = run(cloud, 256)
    assert {(r.kind, r.fatal) for r in reports} == {("InvokeDenied", True)}


def test_closing_invokes_nobody_any_more(cloud):
    invoker = tree(cloud)
    invoker.close()
    for count in (3, 256):
        with pytest.raises(RuntimeError):
            invoker.submit(tasks(count))
    assert not cloud.started and not cloud.dispatches


def test_parts_are_asked_no_faster_than_s3_serves_their_workers(cloud, monkeypatch):
    asked, began = [], time.monotonic()
    plain = cloud.invoke
    monkeypatch.setattr("coordinator.start_rate.task_rate", lambda *_: 1_280.0)  # 128 in 0.1 s

    def invoke(**call):
        if call["FunctionName"] == "dispatch":
            asked.append(time.monotonic() - began)
        return plain(**call)

    monkeypatch.setattr(cloud, "invoke", invoke)
    run(cloud, 512)
    assert all(at >= 0.1 * number for number, at in enumerate(sorted(asked))) and len(asked) == 4


def test_closing_does_not_wait_for_parts_whose_time_has_not_come(cloud, monkeypatch):
    monkeypatch.setattr("coordinator.start_rate.task_rate", lambda *_: 0.1)
    invoker = tree(cloud)
    invoker.submit(tasks(512))
    assert len(collect(invoker, 128)) == 128
    invoker.close()  # the second part's time would come after 20 minutes
    assert len(cloud.dispatches) == 1 and len(cloud.started) == 128


def test_dispatch_functions_say_when_they_sent_an_event(cloud):
    before = time.time() - 0.001
    run(cloud, 256)
    assert all(before <= task.sent <= time.time() for task in cloud.events)


@pytest.mark.parametrize(("count", "size"), [(1_024, 64), (4_096, 128), (16_384, 512), (1, 64)])
def test_all_dispatch_functions_are_under_way_at_once(count, size):
    assert parts(count, 32) == size


def test_an_event_of_512_workers_with_tasks_of_their_own_stays_small():
    many = tasks(512)
    body = json.dumps(DispatchEvent.of(many).to_json()).encode()
    assert len(body) < 20_000
    several = [replace(task, subtasks=16, todo=tuple(range(15))) for task in many[:-1]]
    several.append(replace(many[-1], subtasks=16, todo=(3,)))
    event = json.loads(json.dumps(DispatchEvent.of(several).to_json()))
    assert len(json.dumps(event)) < 100_000
    again = [WorkerTask.from_event(m.to_event()) for m in DispatchEvent.from_json(event).messages()]
    assert again == several


@pytest.mark.parametrize(
    ("event", "word"),
    [
        ([], "version"),
        ({"version": 2}, "version must be 1"),
        ({"version": 1, "own": [{}]}, "common must be"),
        ({"version": 1, "common": {}, "own": []}, "own must be"),
        ({"version": 1, "common": {}, "own": [3]}, "own must hold objects"),
        ({"version": 1, "common": {"attempt": 1}, "own": [{"worker": "x"}]}, "must be ints"),
    ],
)
def test_an_event_that_is_none_is_refused_and_nothing_is_invoked(cloud, event, word):
    with pytest.raises(DispatchRefused, match=word):
        DispatchEvent.from_json(event)
    assert app.handler(event, Context())["state"] == "refused"
    assert not cloud.started


def test_a_dispatch_function_answers_before_its_time_limit(cloud, monkeypatch):
    class Late(Context):
        def get_remaining_time_in_millis(self):
            return 1000 * (app.RESERVE_SECONDS - 1)

    release = threading.Event()
    monkeypatch.setattr(cloud, "_worker", lambda event: release.wait(10))
    threading.Timer(0.1, release.set).start()
    event = DispatchEvent.of(tasks(200)).to_json()
    found = app.handler(event, Late())
    assert len(found["accepted"]) < 200 and found["failed"] == []


def test_the_settings_name_what_is_missing():
    with pytest.raises(SettingsError, match="POLARLAMBDA_WORKER"):
        DispatchSettings.read({})
    assert DispatchSettings.read({"POLARLAMBDA_WORKER": "w"}).worker == "w"
