"""Runs that somebody ends: `runs cancel` and Ctrl-C."""

from __future__ import annotations

import pytest

from blockstore import keys
from blockstore.errors import ObjectMissing
from coordinator import events
from coordinator.run import cancel_run
from tests.coordinator.fake_platform import (
    Answer,
    Platform,
)
from tests.coordinator.one_run import (
    RUN,
    close,
    resume,
    start,
    store,
)


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


@pytest.mark.parametrize("failure", [ZeroDivisionError("no digits"), SystemExit(1)])
def test_an_exception_of_the_listener_stops_paying_and_reaches_the_caller(failure):
    platform = Platform(table={w: [Answer(50.0), Answer()] for w in range(8)})

    def listen(event):
        if isinstance(event, events.Estimated):
            heard.append(event)
            raise failure

    heard = []
    with pytest.raises(type(failure)) as raised:
        start(platform, on_event=listen)
    assert raised.value is failure and len(heard) == 1
    status = store(platform).get_status()
    assert status.state == "stopped" and str(failure) in status.message
    assert store(platform).stopped(1) and store(platform).get_report()["state"] == "stopped"
    assert resume(platform).exact


@pytest.mark.parametrize("kind", [events.Decodable, events.Decoded, events.Finished])
def test_an_exception_of_the_listener_at_the_end_does_not_cost_the_product(kind):
    platform = Platform()

    def listen(event):
        if isinstance(event, kind):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        start(platform, on_event=listen)
    assert store(platform).get_status().state == "exact"
    assert close(store(platform).get_final(), platform.product)
