"""The coordinator function: events good and bad, resume, cancel, and the same run code inside."""

from __future__ import annotations

import json

import numpy as np
import pytest

from blockstore import keys
from blockstore.arrays import decode_array, encode_array
from blockstore.errors import AccessDenied
from coordinator.ports import SystemClock
from coordinator.report import Billing
from functions.coordinator import app
from functions.coordinator.request import Cancel, RequestRefused, Resume, Start, parse_request
from functions.coordinator.settings import CoordinatorSettings, SettingsError
from tests.coordinator.fake_platform import Answer, Platform
from tests.functions.coded_block import RUN, Context

X = "inputs/x.npy"
START = {"version": 1, "matrix": "photos", "x": X}


@pytest.fixture
def platform(monkeypatch):
    """A platform on real time whose workers answer at once."""
    made = Platform(clock=SystemClock(), default=[Answer(0.0)])
    made.bucket.put(X, encode_array(made.x))
    made.bucket.requests.clear()
    settings = CoordinatorSettings(
        "memory", "worker", Billing(worker_timeout=60.0, coordinator_memory_mb=2048)
    )
    monkeypatch.setattr(app, "_connect", lambda: (settings, made.bucket, None))
    monkeypatch.setattr(app, "make_invoker", lambda *names, **options: made)
    return made


def test_a_start_runs_to_the_exact_result_and_answers_plain_json(platform, capsys):
    answer = app.handler(START, Context())
    assert (answer["version"], answer["state"], answer["exact"]) == (1, "exact", True)
    assert {"run", "error", "result", "cost", "arrivals", "workers", "message"} <= set(answer)
    json.dumps(answer, allow_nan=False)
    value = decode_array(platform.bucket.objects[answer["result"]].body)
    np.testing.assert_allclose(value, platform.product, rtol=1e-4)
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["run"] == answer["run"]


def test_x_may_lie_in_the_run_that_is_named(platform):
    platform.bucket.put(keys.x_key(RUN), encode_array(platform.x))
    answer = app.handler({**START, "x": keys.x_key(RUN), "run": RUN}, Context())
    assert answer["run"] == RUN and answer["exact"]


def test_a_difference_to_an_exact_run_has_its_own_x(platform):
    first = app.handler({**START, "run": RUN}, Context())
    assert first["exact"] and first["reference"] is None
    x, second = platform.x + 1, keys.new_run_id(1_700_000_009_000, bytes(10))
    platform.bucket.put(keys.asked_key(second), encode_array(x))
    event = {**START, "reference": RUN, "run": second}
    assert "asked.npy" in app.handler({**event, "x": keys.x_key(second)}, Context())["message"]
    answer = app.handler({**event, "x": keys.asked_key(second)}, Context())
    assert answer["exact"] and answer["reference"] == RUN
    platform.x = x
    value = decode_array(platform.bucket.objects[answer["result"]].body)
    np.testing.assert_allclose(value, platform.product, rtol=1e-4)


def test_what_was_planned_stands_beside_what_was_used(platform):
    run = app.handler(START, Context())["run"]
    report = json.loads(platform.bucket.objects[keys.report_key(run, "json")].body)
    assert report["planned"]["run_cost"]["total"] > 0
    assert report["usage"]["coordinator_gb_seconds"] > 0


def test_what_the_functions_cannot_hold_is_refused_before_anything_is_written(
    platform, monkeypatch
):
    small = Billing(worker_timeout=60.0, coordinator_memory_mb=512)
    settings = CoordinatorSettings("memory", "worker", small)
    monkeypatch.setattr(app, "_connect", lambda: (settings, platform.bucket, None))
    wide = np.ones((9, 4_000_000), np.float32)
    platform.bucket.objects.clear()
    platform.bucket.put(X, encode_array(wide))
    platform.bucket.put(keys.manifest_key("photos"), platform.manifest.to_json())
    before = set(platform.bucket.objects)
    answer = app.handler(START, Context())
    assert (answer["state"], answer["error_type"]) == ("refused", "PlanRefused")
    assert set(platform.bucket.objects) == before and not platform.invoked


def test_a_hand_over_is_billed_for_both_parts(platform):
    platform.default = [Answer(0.4)]
    run = app.handler(START, Context(seconds=1.0))["run"]
    spent = json.loads(platform.bucket.objects[keys.run_key(run)].body)["spent"]
    assert spent["seconds"] > 0 and spent["puts"] > 0 and spent["invokes"] == 1
    app.handler({"version": 1, "resume": run}, Context())
    usage = json.loads(platform.bucket.objects[keys.report_key(run, "json")].body)["usage"]
    assert usage["invokes"] == platform.workers + 2
    assert usage["coordinator_gb_seconds"] > 2 * spent["seconds"]  # 2,048 MB


def test_an_event_delivered_twice_starts_one_run(platform):
    assert app.handler({**START, "run": RUN}, Context())["exact"]
    invoked = len(platform.invoked)
    again = app.handler({**START, "run": RUN}, Context())
    assert again["state"] == "refused" and "begun already" in again["message"]
    assert len(platform.invoked) == invoked


def test_near_the_time_limit_it_says_running_and_can_be_resumed(platform):
    platform.default = [Answer(0.4)]
    first = app.handler(START, Context(seconds=1.0))
    assert first["state"] == "running" and first["result"] is None
    second = app.handler({"version": 1, "resume": first["run"]}, Context())
    assert second["exact"] and len(platform.invoked) == platform.workers


def test_cancel_ends_a_run_that_was_handed_over(platform):
    platform.default = [Answer(1e6)]
    run = app.handler(START, Context(seconds=1.0))["run"]
    answer = app.handler({"version": 1, "cancel": run}, Context())
    assert (answer["state"], answer["run"]) == ("cancelled", run)
    assert keys.stop_key(run, 1) in platform.bucket.objects


@pytest.mark.parametrize(
    ("event", "names"),
    [
        ({}, "version"),
        ({"version": 2, "matrix": "photos", "x": X}, "version"),
        ({"version": 1, "x": X}, "matrix"),
        ({"version": 1, "matrix": "../photos", "x": X}, "matrix name"),
        ({"version": 1, "matrix": "photos"}, "'x'"),
        ({**START, "x": "matrices/photos/manifest.json"}, "x must be"),
        ({**START, "x": keys.x_key(RUN)}, "x must be"),
        ({**START, "until": "soon"}, "until"),
        ({**START, "until": 3}, "until"),
        ({**START, "deadline": -1}, "deadline"),
        ({**START, "deadline": "1"}, "deadline"),
        ({**START, "run": "latest"}, "run id"),
        ({**START, "reference": "latest"}, "run id"),
        ({**START, "reference": RUN}, "reference: there is no run"),
        ({**START, "dead_line": 3}, "dead_line"),
        ({**START, "matrix": "unknown"}, "no matrix"),
        ({**START, "x": "inputs/missing.npy"}, "does not exist"),
        ({"version": 1, "resume": 7}, "resume"),
        ({"version": 1, "resume": RUN}, "no run"),
        ({"version": 1, "cancel": RUN}, "no run"),
        ({"version": 1, "resume": RUN, "matrix": "photos"}, "matrix"),
        ([], "object"),
    ],
)
def test_a_bad_event_is_refused_with_its_reason_and_nothing_is_written(platform, event, names):
    answer = app.handler(event, Context())
    assert answer["state"] == "refused" and names in answer["message"]
    assert answer["error_type"]
    assert platform.invoked == []
    assert not any(kind in ("put", "delete") for kind, _ in platform.bucket.requests)


@pytest.mark.parametrize(
    "body",
    [
        encode_array(np.ones(8, "f4")),
        encode_array(np.full(9, np.inf)),
        encode_array(np.ones(9, "f4"))[:-2],
        b"\x80\x04]",
    ],
)
def test_a_bad_x_is_refused(platform, body):
    platform.bucket.put(X, body)
    platform.bucket.requests.clear()
    answer = app.handler(START, Context())
    assert answer["state"] == "refused" and "x" in answer["message"]
    assert not any(kind == "put" for kind, _ in platform.bucket.requests)


def test_a_missing_worker_function_is_refused(platform):
    platform.missing = True
    answer = app.handler(START, Context())
    assert answer["error_type"] == "FunctionMissing"


def test_trouble_of_the_platform_is_raised(platform):
    def before(kind, key):
        if kind == "put":
            raise AccessDenied("not allowed to write")

    platform.bucket.before = before
    with pytest.raises(AccessDenied):
        app.handler(START, Context())


def test_requests_are_typed():
    assert parse_request(START) == Start("photos", X, "exact", None, None)
    assert parse_request({"version": 1, "resume": RUN}) == Resume(RUN)
    assert parse_request({"version": 1, "cancel": RUN}) == Cancel(RUN)
    with pytest.raises(RequestRefused, match="JSON object"):
        parse_request("start")  # type: ignore[arg-type]


def test_settings_come_from_the_environment_and_name_what_is_wrong():
    environment = {"POLARLAMBDA_BUCKET": "b", "POLARLAMBDA_WORKER": "w"}
    settings = CoordinatorSettings.read(
        {**environment, "POLARLAMBDA_WORKER_TIMEOUT": "90", "AWS_REGION": "mars-1"}
    )
    assert settings.billing.worker_timeout == 90.0
    assert settings.billing.prices.region == "us-east-1"
    for name in environment:
        with pytest.raises(SettingsError, match=name):
            CoordinatorSettings.read({**environment, name: ""})
    with pytest.raises(SettingsError, match="WORKER_MEMORY"):
        CoordinatorSettings.read({**environment, "POLARLAMBDA_WORKER_MEMORY": "big"})
