"""Decode functions that fail, die, straggle or are refused: what is started again, and when not."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from blockstore import decode_keys, keys
from coordinator.check import Check
from coordinator.decode_fleet import ATTEMPTS, DecodeFailed, DecodeFunctions, Fleet
from coordinator.decode_job import put_done
from coordinator.decode_tasks import DecodeTask
from coordinator.ports import InvokeReport
from coordinator.stored_answers import AnswerLost
from tests.coordinator.fake_platform import FakeClock
from tests.memory_bucket import MemoryBucket

RUN = keys.new_run_id(1_700_000_000_000, bytes(10))
TIMEOUT = 60.0


@dataclass(frozen=True)
class Job:
    """What a fleet looks at."""

    run: str = RUN
    decoding: str = "0123456789abcdef"


@dataclass
class Functions:
    """`table[number][attempt - 1]`: seconds until it is done; "dies"; or an error record."""

    bucket: MemoryBucket
    clock: FakeClock
    table: dict[int, list[float | str | dict]] = field(default_factory=dict)
    started: list[tuple[str, int, int]] = field(default_factory=list)
    refused: InvokeReport | None = None

    def check(self) -> None: ...

    def close(self) -> None: ...

    def reports(self) -> list[InvokeReport]:
        found, self.refused = [self.refused] if self.refused else [], None
        return found

    def submit(self, tasks: list[DecodeTask]) -> None:
        for task in tasks:
            assert DecodeTask.from_event(json.loads(json.dumps(task.to_event()))) == task
            self.started.append((task.stage, task.worker, task.attempt))
            row = self.table.get(task.worker, [1.0])
            fate = row[min(task.attempt, len(row)) - 1]
            if isinstance(fate, dict):
                key = decode_keys.decode_error_key(
                    task.run, task.decoding, task.stage, task.worker, task.attempt
                )
                self.bucket.put(key, json.dumps(fate).encode())
            elif not isinstance(fate, str):
                put_done(self.bucket, Job(), task.stage, task.worker, Check(float(task.worker)))
                key = decode_keys.done_key(RUN, Job().decoding, task.stage, task.worker)
                self.bucket.objects[key].since = self.clock.now() + fate


def record(kind: str, *, fatal: bool = False, place: int | None = None) -> dict:
    return {"version": 1, "type": kind, "message": "text", "fatal": fatal, "place": place}


def fleet(table=None, time_left=lambda: None) -> tuple[Fleet, Functions]:
    clock = FakeClock()
    bucket = MemoryBucket(now=clock.now)
    functions = Functions(bucket, clock, table or {})
    deployed = DecodeFunctions(lambda: functions, 1 << 30, TIMEOUT, most=8)
    return Fleet(bucket, Job(), deployed, clock, time_left), functions  # type: ignore[arg-type]


def test_every_range_is_done_once_and_the_checks_add_up():
    made, functions = fleet()
    assert made.run("window", 20, 0.0) == Check(7.0)
    assert sorted(functions.started) == [("window", n, 1) for n in range(8)]
    assert made.run("part", 3, 0.0) == Check(2.0)
    assert made.invoked == 11 and made.seconds > 11


def test_two_stages_count_their_attempts_apart():
    dies_twice = {0: [record("OSError"), record("OSError"), 1.0]}
    made, functions = fleet(dies_twice)
    made.run("window", 2, 0.0)
    made.run("part", 2, 0.0)
    again = [each for each in functions.started if each[1] == 0]
    assert again == [(stage, 0, n) for stage in ("window", "part") for n in (1, 2, 3)]


@pytest.mark.parametrize("fate", ["dies", 1e6])
def test_one_that_is_far_behind_the_others_is_started_once_more(fate):
    made, functions = fleet({3: [fate, 1.0]})
    began = functions.clock.now()
    assert made.run("window", 8, 0.0) is not None
    assert ("window", 3, 2) in functions.started and len(functions.started) == 9
    assert functions.clock.now() - began < TIMEOUT


def test_when_none_answers_the_time_limit_is_waited_for_and_then_it_is_given_up():
    made, functions = fleet({n: ["dies"] for n in range(8)})
    with pytest.raises(DecodeFailed, match="no sign of life"):
        made.run("window", 8, 0.0)
    assert len(functions.started) == 8 * ATTEMPTS


def test_what_fails_every_time_is_given_up_with_its_reason():
    made, _ = fleet({1: [record("StoreUnavailable")]})
    with pytest.raises(DecodeFailed, match="StoreUnavailable: text"):
        made.run("window", 8, 0.0)


def test_what_cannot_help_is_not_tried_again():
    made, functions = fleet({1: [record("AccessDenied", fatal=True)]})
    with pytest.raises(DecodeFailed, match="AccessDenied"):
        made.run("window", 8, 0.0)
    assert len(functions.started) == 8
    functions.clock.sleep(5.0)
    functions.table = {}  # it was put right, and the run is resumed
    assert made.run("window", 8, 0.0) is not None
    assert functions.started[8:] == [("window", 1, 2)]


def test_an_answer_that_a_function_misses_is_named():
    made, _ = fleet({1: [record("AnswerLost", fatal=True, place=5)]})
    with pytest.raises(AnswerLost) as lost:
        made.run("window", 8, 0.0)
    assert lost.value.place == 5


def test_an_invocation_that_is_denied_ends_it():
    made, functions = fleet({1: ["dies"]})
    functions.refused = InvokeReport(1, 1, "InvokeDenied", "not allowed", fatal=True)
    with pytest.raises(DecodeFailed, match="InvokeDenied: not allowed"):
        made.run("window", 8, 0.0)


def test_near_a_time_limit_it_stops_waiting_and_another_one_goes_on():
    left = iter([100.0, 100.0])
    made, functions = fleet({2: [30.0]}, lambda: next(left, 1.0))
    assert made.run("window", 8, 30.0) is None
    other, _ = fleet()
    other.bucket = made.bucket
    functions.clock.sleep(60.0)
    other.clock = functions.clock
    assert other.run("window", 8, 0.0) == Check(7.0)
    assert other.invoked == 0
