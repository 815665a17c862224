"""Residents on the fake platform: announced, replaced when lost, relieved, sent away, billed."""

from __future__ import annotations

import pytest

from blockstore import keys
from blockstore.arrays import decode_array
from blockstore.errors import ObjectMissing
from blockstore.sessions import SHORT_X, Announcement, Asked
from coordinator.report import Billing
from coordinator.residents import COLD_PATIENCE, HANDOVER, PATIENCE
from coordinator.run import resume_run
from tests.coordinator.fake_platform import Answer, Fail, Platform, Refused, Silent
from tests.coordinator.one_run import close
from tests.coordinator.resident_platform import COLD, IDLE, TIMEOUT, Series

RUN = keys.new_run_id(1_700_000_000_000, bytes(10))


def uncoded() -> Platform:
    """Every answer is needed."""
    return Platform(code_name="uncoded", data_blocks=16)


def exact(series: Series, **options):
    outcome = series.multiply(**options)
    assert outcome.exact and close(outcome.value, series.platform.product)
    return outcome


def test_workers_are_invoked_once_and_every_product_is_one_announcement():
    series = Series()
    runs = [exact(series).run for _ in range(5)]
    assert sorted(series.fleet.invoked) == [(worker, 1) for worker in range(16)]
    assert [a.run for a in series.fleet.announced] == runs
    assert [a.number for a in series.fleet.announced] == [1, 2, 3, 4, 5]
    assert series.fleet.announced[0].asked == {} and series.fleet.announced[0].attempt == 1


def test_a_short_x_comes_with_the_announcement_and_a_long_one_does_not():
    series = Series()
    exact(series)
    announced = series.fleet.announced[0]
    assert decode_array(announced.x).tobytes() == series.platform.x.tobytes()
    wide = Series(Platform(code_name="mds", columns=1 + SHORT_X // 4))
    exact(wide)
    assert wide.fleet.announced[0].x == b""


def test_a_resident_that_dies_in_a_run_that_needs_it_is_replaced_in_that_run():
    series = Series(uncoded(), {5: [Answer(), Silent()]})
    exact(series)
    outcome = exact(series)
    assert PATIENCE < outcome.seconds < PATIENCE + COLD + 2.0
    assert series.fleet.invoked.count((5, 2)) == 1 and len(series.fleet.invoked) == 17
    assert series.fleet.announced[-1].oldest == {5: 2}
    exact(series)
    assert len(series.fleet.invoked) == 17


def test_one_that_never_answered_is_given_time_for_a_cold_start():
    series = Series(uncoded(), {5: [Silent()]})
    assert COLD_PATIENCE < exact(series).seconds < COLD_PATIENCE + COLD + 2.0


def test_a_lost_resident_that_no_run_needs_is_replaced_after_some_runs():
    series = Series(table={5: [Answer(), Silent()]})
    count = 0
    while (5, 2) not in series.fleet.invoked:
        exact(series)
        count += 1
        assert count < 200
    waited = sum(0.1 for _ in range(count))
    assert waited > PATIENCE / 2  # only time in which a run waited counts
    series.platform.clock.sleep(20.0)
    exact(series)
    assert len(series.fleet.invoked) == 17


def test_time_between_products_does_not_count_as_silence():
    series = Series(table={5: [Answer(), Silent()]})
    for _ in range(5):
        exact(series)
        series.platform.clock.sleep(IDLE - 5.0)
    assert len(series.fleet.invoked) == 16


def test_a_late_one_is_not_lost():
    series = Series(table={5: [Answer(), Answer(PATIENCE - 0.5)]})
    for _ in range(3):
        exact(series)
    assert len(series.fleet.invoked) == 16


def test_who_is_slow_all_the_time_is_given_longer():
    """Residents of large blocks answer slowly: patience is a multiple of the usual time."""
    series = Series(uncoded(), {w: [Answer(2.0)] * 9 for w in range(16)})
    for _ in range(2):
        exact(series)
    series.table[5] = [Answer(9.0)]
    exact(series)
    assert series.residents.patience > 15.0
    assert len(series.fleet.invoked) == 16


def test_idle_residents_have_ended_and_are_invoked_again():
    series = Series()
    exact(series)
    series.platform.clock.sleep(IDLE)
    exact(series)
    assert series.fleet.invoked.count((5, 2)) == 1 and len(series.fleet.invoked) == 32
    assert series.fleet.announced[-1].replaced(5, 1)  # in case that it is still there


def test_residents_near_their_time_limit_are_relieved_and_serve_to_the_end():
    series = Series(uncoded())
    exact(series)
    began = series.platform.clock.now()
    while series.platform.clock.now() < began + TIMEOUT - HANDOVER:
        assert len(series.fleet.invoked) == 16
        series.platform.clock.sleep(IDLE / 2)
        before = len(series.fleet.invoked)
        outcome = exact(series)
    assert before == 16 and len(series.fleet.invoked) == 32
    assert outcome.seconds < COLD  # those that leave have answered, before the new ones could
    assert not series.fleet.announced[-1].replaced(5, 1)


def test_a_failed_task_is_asked_for_again_of_a_new_resident():
    failing = {w: [Answer(), Fail(), Answer()] for w in (3, 4)}
    series = Series(uncoded(), failing)
    exact(series)
    outcome = exact(series)
    assert {e.worker for e in outcome.worker_errors} == {3, 4}
    last = series.fleet.announced[-1]
    assert last.asked == {3: Asked(attempt=2), 4: Asked(attempt=2)} and last.attempt == 1
    assert last.replaced(3, 1) and not last.replaced(5, 1)
    assert sorted(series.fleet.invoked)[-2:] and len(series.fleet.invoked) == 18


def test_a_fatal_error_ends_the_run_and_the_next_one_begins_with_new_residents():
    series = Series(table={w: [Fail("AccessDenied", fatal=True)] for w in range(16)})
    outcome = series.multiply()
    assert outcome.state == "failed" and "AccessDenied" in outcome.message
    exact(series)
    assert len(series.fleet.invoked) == 32


def test_an_invocation_that_is_refused_is_shown_and_tried_again_in_the_next_product():
    series = Series(table={5: [Refused()]})
    outcome = exact(series)
    assert [e.type for e in outcome.worker_errors] == ["InvokeUnavailable"]
    exact(series)
    assert (5, 2) in series.fleet.invoked


def test_a_function_that_is_not_there_is_refused_before_anything_is_announced():
    series = Series()
    series.platform.missing = True
    with pytest.raises(Exception, match="does not exist"):
        series.multiply()
    assert series.fleet.announced == [] and series.platform.bucket.requests == []


def test_residents_are_sent_away_at_the_end_unless_they_have_left():
    series = Series()
    exact(series)
    series.residents.end()
    assert series.fleet.announced[-1] == Announcement(number=2, ended=True)
    assert series.fleet.alive == [] and series.fleet.closed
    series = Series()
    exact(series)
    series.platform.clock.sleep(IDLE + 1.0)
    series.residents.end()
    assert len(series.fleet.announced) == 1
    unused = Series()
    unused.residents.end()
    assert unused.fleet.announced == [] and unused.fleet.closed


def test_residents_are_billed_for_all_the_time_they_are_alive():
    series = Series()
    began = series.platform.clock.now()
    used = [exact(series).usage]
    for _ in range(3):
        series.platform.clock.sleep(5.0)
        used.append(exact(series).usage)
    alive = series.platform.clock.now() - began
    total = sum(u.worker_gb_seconds for u in used)
    assert 0.95 * 16 * alive < total <= 16 * alive
    assert [u.invokes for u in used] == [16, 0, 0, 0]
    assert used[1].worker_gb_seconds > 16 * 5.0
    series.platform.clock.sleep(100.0)  # nobody says so, but they are gone after their idle limit
    series.residents.end()
    rest = series.stays.usage(series.platform.clock.now()).worker_gb_seconds
    assert 0.9 * 16 * IDLE < rest <= 16 * IDLE


class KilledError(BaseException):
    """The process ends here."""


def requests_of_two_products() -> int:
    series = Series(uncoded(), {2: [Answer(), Silent()]})
    exact(series)
    exact(series, run=RUN)
    return len(series.platform.bucket.requests)


@pytest.mark.parametrize("number", range(1, requests_of_two_products() + 1, 2))
def test_killed_at_any_request_the_run_can_be_resumed_without_the_session(number):
    series = Series(uncoded(), {2: [Answer(), Silent()]})
    count = 0

    def before(kind, key):
        nonlocal count
        count += 1
        if count == number:
            raise KilledError

    series.platform.bucket.before = before
    runs = [keys.new_run_id(1_700_000_000_000 + n, bytes(10)) for n in (1, 2)]
    with pytest.raises(KilledError):
        for run in runs:
            series.multiply(run=run)
    platform = series.platform
    platform.bucket.before = lambda kind, key: None
    for run in runs:
        options = {"invoker": platform, "clock": platform.clock}
        try:
            outcome = resume_run(
                platform.bucket, run, billing=Billing(worker_timeout=TIMEOUT), **options
            )
        except ObjectMissing:
            continue
        assert outcome.exact and close(outcome.value, platform.product)


def test_a_run_left_behind_takes_the_answers_of_residents_that_are_still_there():
    series = Series(uncoded())
    exact(series)

    def before(kind, key):
        if kind == "list":
            raise KilledError

    series.platform.bucket.before = before
    with pytest.raises(KilledError):
        series.multiply(run=RUN)
    platform = series.platform
    platform.bucket.before = lambda kind, key: None
    outcome = resume_run(platform.bucket, RUN, invoker=platform, clock=platform.clock)
    assert outcome.exact and platform.invoked == []
