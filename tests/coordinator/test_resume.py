"""Runs whose coordinator was killed, handed them over, or is not the only one."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from blockstore import keys
from blockstore.errors import ObjectMissing
from coordinator import events
from coordinator.inputs import MatrixReplaced
from coordinator.outcome import Outcome
from coordinator.run import start_run
from tests.coordinator.fake_platform import (
    Answer,
    Fail,
    Platform,
    Refused,
    Silent,
)
from tests.coordinator.one_run import (
    RUN,
    TIMEOUT,
    close,
    resume,
    start,
    store,
)


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


def test_a_coordinator_that_is_alone_never_reads_its_own_run_again():
    platform = Platform()
    outcome = start(platform)
    journals = [kind for kind, key in platform.bucket.requests if key == keys.run_key(RUN)]
    assert outcome.exact
    assert "get" not in journals
    assert journals.count("put") >= 2  # the dispatch, and the decisive set


def test_a_first_journal_that_the_sdk_sent_twice_is_our_own():
    platform = Platform()
    put = platform.bucket.put

    def twice(key, body, **options):
        done = put(key, body, **options)
        return put(key, body, **options) if options.get("if_none_match") else done

    platform.bucket.put = twice
    outcome = start_run(
        platform.bucket, platform.manifest, platform.x, invoker=platform, clock=platform.clock
    )
    assert outcome.exact


def test_of_two_coordinators_the_first_decides_and_both_write_the_same_bytes():
    """A second one resumes while the first is at work; it is the faster one to see answers."""
    platform = Platform(default=[Answer(1.0)], table={w: [Answer(9.0)] for w in range(4)})
    second: list[Outcome] = []

    def resume_elsewhere(kind, key):
        deciding = kind == "put" and key == keys.run_key(RUN) and platform.clock.now() - began > 5
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
        tasks = sorted(tasks, key=lambda task: task.worker)
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


def test_resume_refuses_a_matrix_that_was_encoded_again():
    platform = Platform()
    start(platform)
    other = replace(platform.manifest, source_digest="sha256:1")
    platform.bucket.put(keys.manifest_key("photos"), other.to_json())
    with pytest.raises(MatrixReplaced, match="encoded again"):
        resume(platform)
