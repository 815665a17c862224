"""Whole runs in memory, on simulated time: faults as a table, exact invocation counts."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockstore import keys
from blockstore.arrays import decode_array
from blockstore.errors import ObjectMissing
from blockstore.runs import RunStore
from coordinator import events
from coordinator.inputs import InputRefused, MatrixReplaced
from coordinator.invoker import FunctionMissing
from coordinator.outcome import Outcome
from coordinator.report import Billing
from coordinator.run import cancel_run, resume_run, start_run
from coordinator.until import UntilRefused
from tests.coordinator.fake_platform import (
    Answer,
    Damaged,
    Fail,
    Platform,
    Refused,
    Silent,
)

TIMEOUT = 60.0
BILLING = Billing(worker_timeout=TIMEOUT)
RUN = keys.new_run_id(1_700_000_000_000, bytes(10))


def start(platform: Platform, **options) -> Outcome:
    return start_run(
        platform.bucket,
        platform.manifest,
        platform.x,
        **{"invoker": platform, "clock": platform.clock, "billing": BILLING, "run": RUN} | options,
    )


def resume(platform: Platform, **options) -> Outcome:
    platform.reports()  # what the earlier process did not hear, nobody hears
    return resume_run(
        platform.bucket,
        RUN,
        **{"invoker": platform, "clock": platform.clock, "billing": BILLING} | options,
    )


def store(platform: Platform) -> RunStore:
    return RunStore(platform.bucket, RUN)


def close(value, product) -> bool:
    return bool(np.linalg.norm(value - product) <= 1e-5 * np.linalg.norm(product))


@pytest.mark.parametrize("k", [None, 1, 3])
@pytest.mark.parametrize("dtype", ["<f4", "<f8"])
@pytest.mark.parametrize("rows", [31, 1, 5, 33])  # fewer rows than blocks, padding, none
def test_an_undisturbed_run_is_exact_verified_and_written(k, dtype, rows):
    platform = Platform(k=k, dtype=dtype, rows=rows)
    outcome = start(platform)
    assert (outcome.state, outcome.met, outcome.exact) == ("exact", True, True)
    assert outcome.verified and "hold" in outcome.verification
    assert outcome.value.shape == platform.product.shape and close(outcome.value, platform.product)
    assert outcome.value.dtype == dtype
    assert outcome.error == outcome.error_upper == 0.0
    written = decode_array(platform.bucket.objects[outcome.result_key].body)
    np.testing.assert_array_equal(written, outcome.value)
    status = store(platform).get_status()
    assert (status.state, status.exact, status.verified) == ("exact", True, True)
    assert len(platform.invoked) == platform.workers


def silent(count):
    return {worker: [Silent()] for worker in range(count)}


SURVIVORS = {w: [Answer()] for w in range(16)}
TABLE = {
    # name: (table, options, state, met, workers invoked a second time)
    "one silent": ({3: [Silent()]}, {}, "exact", True, 0),
    "one fails": ({3: [Fail()]}, {}, "exact", True, 0),
    "one fatal": ({3: [Fail("NotFinite", True)]}, {}, "exact", True, 0),
    "eight fail, then answer": ({w: [Fail(), Answer()] for w in range(8)}, {}, "exact", True, 8),
    "eight silent, then answer": (
        {w: [Silent(), Answer()] for w in range(8)},
        {},
        "exact",
        True,
        8,
    ),
    "eight fail for ever": ({w: [Fail()] for w in range(8)}, {}, "estimated", False, 8),
    "eight silent for ever": (silent(8), {}, "estimated", False, 8),
    "eight damaged, then answer": (
        {w: [Damaged("cut"), Answer()] for w in range(8)},
        {},
        "exact",
        True,
        8,
    ),
    "eight fatal": ({w: [Fail("NotFinite", True)] for w in range(8)}, {}, "failed", False, 0),
    "nan in answers": ({w: [Damaged("nan")] for w in range(8)}, {}, "failed", False, 0),
    "wrong shapes": ({w: [Damaged("shape")] for w in range(8)}, {}, "failed", False, 0),
    "another x": ({w: [Damaged("other x")] for w in range(8)}, {}, "failed", False, 0),
    "all fatal": ({w: [Fail("AccessDenied", True)] for w in range(16)}, {}, "failed", False, 0),
    "all silent": (silent(16), {}, "failed", False, 16),
    "eight throttled, then answer": (
        {w: [Refused(), Answer()] for w in range(8)},
        {},
        "exact",
        True,
        8,
    ),
    "no function": (
        {w: [Refused("FunctionMissing", True)] for w in range(16)},
        {},
        "failed",
        False,
        0,
    ),
    "late answers": ({w: [Answer(70.0)] for w in range(3)}, {}, "exact", True, 0),
    "slow, deadline": (
        {w: [Answer(50.0)] for w in range(16)},
        {"deadline": 5.0},
        "failed",
        False,
        0,
    ),
    "half, deadline": (
        {w: [Answer(50.0)] for w in range(8)},
        {"deadline": 5.0},
        "estimated",
        False,
        0,
    ),
    "half, seconds": (
        {w: [Answer(50.0)] for w in range(8)},
        {"until": "seconds=5"},
        "estimated",
        True,
        0,
    ),
    "half, error": (
        {w: [Answer(50.0)] for w in range(8)},
        {"until": "error=1"},
        "estimated",
        True,
        0,
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_faults(name):
    table, options, state, met, again = TABLE[name]
    platform = Platform(table=table)
    outcome = start(platform, **options)
    assert (outcome.state, outcome.met) == (state, met), outcome.message
    assert len(platform.invoked) == platform.workers + again
    status = store(platform).get_status()
    assert status.state == state and status.message == outcome.message
    report = store(platform).get_report()
    assert report["state"] == state and report["arrivals"] == outcome.arrivals
    if state == "exact":
        assert close(outcome.value, platform.product)
    elif outcome.value is not None:
        kept = decode_array(platform.bucket.objects[keys.estimate_key(RUN)].body)
        np.testing.assert_array_equal(kept, outcome.value)
        assert outcome.error_upper >= outcome.error > 0
    stops = [key for key in platform.bucket.objects if key.startswith(keys.stop_prefix(RUN))]
    assert len(stops) == (2 if again else 1)  # nobody is paid any longer
    reported = [r for row in table.values() for r in row[:1] if isinstance(r, Fail)]
    if state != "exact" and reported:
        assert {r.type for r in outcome.worker_errors} >= {r.kind for r in reported}


@pytest.mark.parametrize("options", [{"deadline": 0.15}, {"until": "seconds=0.15"}])
def test_answers_that_are_there_when_the_time_is_up_are_used(options):
    """The first look comes after the time allowed: a slow client, a short time."""
    platform = Platform(table={w: [Answer(50.0)] for w in range(8)})
    platform.clock.sleep = lambda seconds: setattr(platform.clock, "time", platform.clock.time + 1)
    outcome = start(platform, **options)
    assert (outcome.state, outcome.arrivals) == ("estimated", 8)
    assert outcome.value is not None and outcome.met == ("until" in options)


def test_a_silent_worker_is_given_up_at_its_timeout_and_not_before():
    platform = Platform(table=silent(8))
    outcome = start(platform)
    assert 2 * TIMEOUT <= outcome.seconds <= 2 * TIMEOUT + 5


def test_every_error_is_shown_even_in_an_exact_run():
    platform = Platform(table={2: [Fail("NotFinite", True, after=0.01)]})
    outcome = start(platform)
    assert outcome.state == "exact"
    assert [(r.worker, r.type) for r in outcome.worker_errors] == [(2, "NotFinite")]
    assert store(platform).get_report()["failures"][0]["type"] == "NotFinite"


def test_a_wrong_answer_contradicts_the_left_over_equations_and_nothing_exact_is_written():
    platform = Platform(table={4: [Damaged("wrong")]})
    outcome = start(platform)
    assert (outcome.state, outcome.exact, outcome.met) == ("failed", False, False)
    assert "left-over equations" in outcome.message
    assert keys.final_result_key(RUN) not in platform.bucket.objects


def test_without_left_over_equations_the_result_is_exact_but_not_verified():
    outcome = start(Platform(code_name="uncoded", workers=11))
    assert outcome.exact and not outcome.verified and "not checked" in outcome.verification


@pytest.mark.parametrize("size", [1e300, 1e-300, 0.0])
def test_values_of_any_size_are_exact_and_verified_and_a_wrong_one_is_seen(size):
    platform = Platform(dtype="<f8", scale=size)
    outcome = start(platform)
    assert outcome.exact and outcome.verified, outcome.message
    np.testing.assert_allclose(outcome.value / (size or 1), platform.product / (size or 1), 1e-9)
    platform = Platform(dtype="<f8", scale=size, table={4: [Damaged("wrong")]})
    assert start(platform).state == ("failed" if size else "exact")


def test_rounding_in_the_encoder_is_no_contradiction_for_an_x_of_higher_precision():
    """Blocks in float32 hold rounded sums; with x in float64 the answers do not hide that."""
    platform = Platform()
    platform.x = platform.x.astype("<f8") + 1e-9
    outcome = start(platform)
    assert outcome.exact and outcome.verified and outcome.value.dtype == np.float64
    assert close(outcome.value, platform.product)


def test_a_product_that_cancels_is_no_contradiction():
    """Answers rounded at the scale of their sums, a product far below it."""
    platform = Platform(rows=220)
    rng = np.random.default_rng(0)
    platform.coded = (
        platform.code.encode(np.full((11, 20 * 9), 1e-9) * rng.standard_normal((11, 180)))
        .reshape(16, 20, 9)
        .astype("<f4")
    )
    noise = {w: rng.standard_normal(20) * 6e-8 for w in range(16)}
    right = platform._answer

    def rounded(task, outcome, since):
        from blockstore.arrays import encode_array

        stored = right(task, outcome, since)
        stored.body = encode_array((decode_array(stored.body) + noise[task.worker]).astype("<f4"))
        return stored

    platform._answer = rounded
    assert start(platform).state == "exact"


def test_events_tell_the_story_in_order():
    seen: list[events.Event] = []
    platform = Platform(table={w: [Fail(), Answer()] for w in range(8)})
    start(platform, on_event=seen.append)
    kinds = [type(event) for event in seen]
    assert kinds[0] is events.Dispatched and kinds[-1] is events.Finished
    for kind in (events.Failed, events.Estimated, events.Reinvoked, events.Decodable):
        assert kind in kinds
    assert kinds.index(events.Decodable) < kinds.index(events.Decoded)
    assert [e.t for e in seen] == sorted(e.t for e in seen)
    arrivals = [e.arrivals for e in seen if isinstance(e, events.Arrived)]
    assert arrivals == list(range(1, len(arrivals) + 1))
    estimates = [e for e in seen if isinstance(e, events.Estimated)]
    assert all(e.value.shape == platform.product.shape for e in estimates)


@settings(max_examples=25, deadline=None)
@given(st.permutations(range(16)), st.integers(0, 5))
def test_any_order_and_duplicates_give_a_result_that_depends_on_the_decisive_set_alone(order, dup):
    delays = {w: [Answer(0.05 + 0.3 * place)] for place, w in enumerate(order)}
    platform = Platform(table=delays)
    outcome = start(platform)
    assert outcome.exact and close(outcome.value, platform.product)
    decisive = json.loads(platform.bucket.objects[keys.run_key(RUN)].body)["decisive"]
    assert set(order[: len(decisive)]) == set(decisive)
    for worker in order[:dup]:  # a second delivery of an event writes nothing new
        assert not store(platform).put_result(worker, np.zeros(3), {})
    again = resume(platform)
    assert again.value.tobytes() == outcome.value.tobytes()


@pytest.mark.parametrize("spoil", ["x length", "x nan", "x complex", "x 3-D", "until", "deadline"])
def test_bad_input_is_refused_before_anything_is_written_or_invoked(spoil):
    platform = Platform()
    options = {}
    if spoil == "x length":
        platform.x = np.ones(8, "f4")
    elif spoil == "x nan":
        platform.x[4] = np.nan
    elif spoil == "x complex":
        platform.x = platform.x.astype("c8")
    elif spoil == "x 3-D":
        platform.x = np.ones((9, 1, 1))
    elif spoil == "until":
        options["until"] = "soon"
    else:
        options["deadline"] = -1.0
    with pytest.raises((InputRefused, UntilRefused), match=spoil.split()[0]):
        start(platform, **options)
    assert platform.bucket.requests == [] and platform.invoked == []


def test_a_missing_function_is_noticed_before_anything_is_written():
    platform = Platform(missing=True)
    with pytest.raises(FunctionMissing):
        start(platform)
    assert platform.bucket.requests == []


def test_big_endian_and_strided_x_are_taken():
    platform = Platform()
    platform.x = np.repeat(platform.x, 2).astype(">f8")[::2]
    assert close(start(platform).value, platform.product)


class KilledError(Exception):
    """The process ends here."""


def kill_at(platform: Platform, number: int) -> None:
    """The coordinator's process dies at its `number`-th request to the store."""
    count = 0

    def before(kind, key):
        nonlocal count
        count += 1
        if count == number:
            raise KilledError

    platform.bucket.before = before


def kill_points() -> int:
    platform = Platform(table={2: [Silent()]})
    start(platform)
    return len(platform.bucket.requests)


@pytest.mark.parametrize("number", range(1, kill_points() + 1))
def test_killed_at_any_request_a_run_can_be_resumed(number):
    platform = Platform(table={2: [Silent()]})
    kill_at(platform, number)
    try:
        start(platform)
    except KilledError:
        pass
    else:
        pytest.fail("the kill point was not reached")
    platform.bucket.before = lambda kind, key: None
    if keys.run_key(RUN) not in platform.bucket.objects:
        with pytest.raises(ObjectMissing):
            resume(platform)
        return
    record = json.loads(platform.bucket.objects[keys.run_key(RUN)].body)
    before = platform.bucket.objects.get(keys.final_result_key(RUN))
    invoked = len(platform.invoked)
    outcome = resume(platform)
    assert outcome.exact and close(outcome.value, platform.product)
    if record["decisive"] is not None:
        assert len(platform.invoked) == invoked
        again = json.loads(platform.bucket.objects[keys.run_key(RUN)].body)
        assert again["decisive"] == record["decisive"]
        reference = Platform(table={2: [Silent()]})
        start(reference)
        written = platform.bucket.objects[keys.final_result_key(RUN)].body
        assert written == reference.bucket.objects[keys.final_result_key(RUN)].body
        assert before is None or written == before.body


@pytest.mark.parametrize("count", [0, 1, 5, 15])
def test_killed_while_dispatching_a_run_invokes_the_others_when_resumed(count):
    platform = Platform()
    submit = platform.submit

    def die(tasks):
        submit(tasks[:count])
        raise KilledError

    platform.submit = die
    with pytest.raises(KilledError):
        start(platform)
    platform.submit = submit
    outcome = resume(platform)
    assert outcome.exact and outcome.seconds < TIMEOUT
    assert {worker for worker, _ in platform.invoked} == set(range(16))


@pytest.mark.parametrize("number", [1, 2, 5])
def test_killed_while_asleep_a_run_can_be_resumed_without_invoking_again(number):
    platform = Platform()
    sleep, count = platform.clock.sleep, 0

    def die(seconds):
        nonlocal count
        count += 1
        if count == number:
            raise KilledError
        sleep(0.02)

    platform.clock.sleep = die
    with pytest.raises(KilledError):
        start(platform)
    platform.clock.sleep = sleep
    outcome = resume(platform)
    assert outcome.exact
    again = [worker for worker, attempt in platform.invoked if attempt > 1]
    assert not again or number == 1  # the dispatch had not been written down as complete


def test_a_permission_that_was_put_right_lets_a_failed_run_be_resumed():
    platform = Platform(default=[Fail("AccessDenied", True), Answer()])
    assert start(platform).state == "failed"
    outcome = resume(platform)
    assert outcome.exact and close(outcome.value, platform.product)
    assert len(platform.invoked) == 2 * platform.workers


def test_a_permission_that_was_not_put_right_fails_again_and_is_tried_once():
    platform = Platform(default=[Fail("AccessDenied", True)])
    start(platform)
    outcome = resume(platform)
    assert outcome.state == "failed" and "AccessDenied" in outcome.message
    assert len(platform.invoked) == 2 * platform.workers


def test_a_run_that_is_exact_is_returned_and_not_computed_again():
    platform = Platform(table={2: [Fail("NotFinite", True)]})
    outcome = start(platform)
    platform.bucket.requests.clear()
    platform.clock.time += 86_400
    again = resume(platform)
    assert again.value.tobytes() == outcome.value.tobytes()
    assert replace(again, value=None) == replace(outcome, value=None)
    assert {kind for kind, _ in platform.bucket.requests} <= {"get", "head"}
    assert len(platform.invoked) == platform.workers


def test_of_two_coordinators_the_first_decides_and_both_write_the_same_bytes():
    """A second one resumes while the first is at work; it is the faster one to see answers."""
    platform = Platform(default=[Answer(1.0)], table={w: [Answer(9.0)] for w in range(4)})
    second: list[Outcome] = []

    def resume_elsewhere(kind, key):
        deciding = kind == "head" and key == keys.run_key(RUN) and platform.clock.now() - began > 5
        if deciding and not second:
            second.append(None)  # the first one has seen its set and is about to store it
            platform.clock.time += 1.0  # more answers come in between
            second[0] = resume(platform)

    began = platform.clock.now()
    platform.bucket.before = resume_elsewhere
    platform.table[15] = [Answer(9.5)]
    first = start(platform)
    assert second[0].exact and first.exact
    assert second[0].arrivals > 15 > first.arrivals or second[0].arrivals == first.arrivals
    assert first.value.tobytes() == second[0].value.tobytes()
    decisive = json.loads(platform.bucket.objects[keys.run_key(RUN)].body)["decisive"]
    assert len(decisive) == second[0].arrivals


def test_a_coordinator_that_sees_the_stop_of_another_one_that_decided_takes_its_set_over():
    platform = Platform(default=[Answer(1.0)], table={w: [Answer(9.0)] for w in range(8)})
    second: list[Outcome] = []

    def resume_elsewhere(event):
        if isinstance(event, events.Estimated) and not second:
            second.append(None)
            second[0] = resume(platform)

    first = start(platform, on_event=resume_elsewhere)
    assert first.exact and second[0].exact
    assert first.value.tobytes() == second[0].value.tobytes()
    assert store(platform).get_status().state == "exact"


def test_a_lost_decisive_answer_is_an_error_and_not_another_result():
    platform = Platform()
    start(platform)
    platform.bucket.delete([keys.result_key(RUN, 0), keys.final_result_key(RUN)])
    with pytest.raises(RuntimeError, match=r"workers \[0\] were decided upon"):
        resume(platform)


def test_near_the_time_limit_the_run_is_handed_over_and_nobody_is_invoked_twice():
    platform = Platform(default=[Answer(30.0)])
    began = platform.clock.now()
    first = start(platform, time_left=lambda: 30.0 - (platform.clock.now() - began))
    assert first.state == "running" and not first.met
    assert store(platform).get_status().state == "running"
    assert not any(key.startswith(keys.stop_prefix(RUN)) for key in platform.bucket.objects)
    second = resume(platform)
    assert second.exact and len(platform.invoked) == platform.workers
    assert 30.0 <= second.seconds < 31.5


def test_a_hand_over_half_way_through_the_dispatch_leaves_the_others_to_be_invoked():
    platform = Platform(default=[Answer(5.0)], table={3: [Refused(), Answer()]})
    reports, submit, waiting = platform.reports, platform.submit, []

    def slowly(tasks):
        submit(tasks[:10])
        waiting.extend(tasks[10:])

    platform.submit = slowly
    assert start(platform, time_left=lambda: 1.0).state == "running"
    platform.submit = submit
    assert reports() == []
    assert resume(platform).exact
    assert sorted(w for w, attempt in platform.invoked if attempt == 2) == [3, *range(10, 16)]


def test_a_deadline_goes_on_counting_through_a_hand_over():
    platform = Platform(default=[Answer(500.0)], table={0: [Answer(1.0)]})
    began = platform.clock.now()
    start(platform, deadline=50.0, time_left=lambda: 30.0 - (platform.clock.now() - began))
    outcome = resume(platform)
    assert outcome.state == "estimated" and outcome.seconds == pytest.approx(50.0, abs=0.5)


def test_cancel_ends_a_running_coordinator_and_keeps_its_estimate():
    platform = Platform(table={w: [Answer(50.0)] for w in range(8)})

    def cancel(event):
        if isinstance(event, events.Estimated) and event.arrivals == 8:
            cancel_run(platform.bucket, RUN)

    outcome = start(platform, on_event=cancel)
    assert outcome.state == "cancelled" and not outcome.met and outcome.arrivals == 8
    assert outcome.value is not None and outcome.seconds < 5
    assert store(platform).get_status().state == "cancelled"
    assert store(platform).stopped(1)


def test_cancel_without_a_coordinator_marks_the_run_and_resume_starts_it_again():
    platform = Platform(table={w: [Answer(1e9), Answer()] for w in range(8)})
    began = platform.clock.now()
    start(platform, time_left=lambda: 22.0 - (platform.clock.now() - began))
    cancel_run(platform.bucket, RUN)
    assert store(platform).get_status().state == "cancelled"
    outcome = resume(platform)
    assert outcome.exact and close(outcome.value, platform.product)
    assert sorted(w for w, attempt in platform.invoked if attempt == 2) == list(range(8))


def test_cancel_of_a_finished_run_changes_nothing():
    platform = Platform()
    start(platform)
    before = dict(platform.bucket.objects)
    assert cancel_run(platform.bucket, RUN).state == "exact"
    assert platform.bucket.objects == before
    with pytest.raises(ObjectMissing):
        cancel_run(platform.bucket, keys.new_run_id(1, bytes(10)))


def test_ctrl_c_stops_paying_and_keeps_the_estimate():
    platform = Platform(table={w: [Answer(50.0), Answer()] for w in range(8)})

    pressed = []

    def interrupt(event):
        if isinstance(event, events.Estimated) and event.arrivals == 8 and not pressed:
            pressed.append(event)
            raise KeyboardInterrupt

    outcome = start(platform, on_event=interrupt)
    assert outcome.state == "stopped" and outcome.value is not None
    assert store(platform).stopped(1) and store(platform).get_status().state == "stopped"
    assert resume(platform).exact


def test_ctrl_c_pressed_twice_still_stops_the_workers():
    platform = Platform(table={w: [Answer(50.0), Answer()] for w in range(8)})

    def interrupt(event):
        if isinstance(event, events.Estimated) and event.arrivals == 8:
            platform.bucket.before = again
            raise KeyboardInterrupt

    def again(kind, key):
        platform.bucket.before = lambda kind, key: None
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        start(platform, on_event=interrupt)
    assert store(platform).stopped(1)
    platform.bucket.before = lambda kind, key: None
    assert resume(platform).exact


def test_resume_refuses_a_matrix_that_was_encoded_again():
    platform = Platform()
    start(platform)
    other = replace(platform.manifest, source_digest="sha256:1")
    platform.bucket.put(keys.manifest_key("photos"), other.to_json())
    with pytest.raises(MatrixReplaced, match="encoded again"):
        resume(platform)


def test_the_report_has_times_requests_and_dollars_beside_the_plan():
    platform = Platform()
    planned = {"run_cost": {"total": 0.25}}
    start(platform, billing=Billing(worker_timeout=TIMEOUT, planned=planned))
    report = store(platform).get_report()
    assert {"dispatch", "collect", "decode", "write"} <= set(report["phases"])
    assert len(report["answers"]) == report["arrivals"]
    assert {"arrived", "seconds_read", "cold", "peak_memory"} <= set(report["answers"][0])
    assert report["usage"]["invokes"] == platform.workers
    kinds = [kind for kind, _ in platform.bucket.requests]
    assert report["usage"]["puts"] == pytest.approx(
        kinds.count("put") + report["arrivals"], abs=3
    )  # less the report's own
    assert report["cost"]["total"] > 0 and report["planned"] == planned
    page = platform.bucket.objects[keys.report_key(RUN, "html")].body.decode()
    assert "<svg" in page and "planned $0.25" in page and "<script" not in page
    assert page.count("<circle") == report["arrivals"] and "decoded: exact" in page


def test_the_page_of_a_run_without_the_exact_product_says_what_is_known_and_escapes_errors():
    platform = Platform(table=silent(8) | {15: [Fail("<b>Odd</b>")]})
    outcome = start(platform, deadline=10.0)
    page = platform.bucket.objects[keys.report_key(RUN, "html")].body.decode()
    assert f"{outcome.error:.1%} (95 %: below {outcome.error_upper:.1%})" in page
    assert "decoded: exact" not in page and "upper bound" in page
    assert "&lt;b&gt;Odd" in page and "<b>" not in page
    platform = Platform(table=silent(16))
    start(platform, deadline=10.0)
    assert (
        "No answer arrived" in platform.bucket.objects[keys.report_key(RUN, "html")].body.decode()
    )


def test_silent_workers_are_billed_up_to_a_stated_bound():
    platform = Platform(table=silent(8))
    start(platform, deadline=10.0)
    report = store(platform).get_report()
    assert report["bound_gb_seconds"] == pytest.approx(8 * 10.0 * 1769 / 1024, rel=0.05)


def test_estimates_are_published_while_running_but_not_too_often():
    platform = Platform(table={w: [Answer(0.1 * (w + 1))] for w in range(16)})
    seen = []
    start(platform, on_event=lambda e: seen.append(e) if isinstance(e, events.Estimated) else None)
    assert len(seen) >= 2
    gaps = np.diff([e.t for e in seen])
    assert (gaps >= 0.5).all()
