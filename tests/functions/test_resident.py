"""A resident worker on a fake clock: what it reads, serves, skips, and when it ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from blockstore import keys
from blockstore.answers import AnswerMetadata
from blockstore.arrays import array_digest, decode_array, encode_array
from blockstore.errors import AccessDenied, StoreUnavailable, TaskRefused
from blockstore.runs import RunStore
from blockstore.sessions import Announcement, Asked, ResidentTask, announce
from functions.worker import app
from functions.worker.polling import ASLEEP, FASTEST, SLOWEST, Polling
from functions.worker.resident import RESERVE, Resident
from tests.functions.coded_block import RUN, Context, make_block
from tests.memory_bucket import Stored

SESSION = keys.new_run_id(1_700_000_000_000, bytes(range(10)))


def run_id(number: int) -> str:
    return keys.new_run_id(1_700_000_000_000 + number, bytes(10))


@dataclass
class Stage:
    """A resident with 7 x 50 blocks, and a script: what happens when the clock passes a time."""

    subtasks: int = 1
    idle_limit: float = 20.0
    limit: float = 300.0
    script: list[tuple[float, Callable[[], None]]] = field(default_factory=list)
    time: float = 0.0

    def __post_init__(self) -> None:
        rng = np.random.default_rng(1)
        self.blocks = rng.standard_normal((self.subtasks, 7, 50)).astype("<f4")
        made = make_block(self.blocks[0], rng.standard_normal(50).astype("<f4"), (3, 50))
        self.bucket = made.bucket
        work = replace(made.task, subtasks=self.subtasks)
        for subtask in range(self.subtasks):
            for number in range(work.tiling.count):
                span = work.tiling.span(number)
                tile = self.blocks[subtask][span.row0 : span.row1]
                self.bucket.objects[work.tile_key(number, subtask)] = Stored(encode_array(tile), {})
        self.task = ResidentTask(
            session=SESSION, generation=1, idle_limit=self.idle_limit, work=work
        )
        self.bucket.requests.clear()
        self.sleeps: list[float] = []

    def at(self, time: float, action: Callable[[], None]) -> None:
        self.script.append((time, action))
        self.script.sort(key=lambda entry: entry[0])

    def announce(self, number: int, **changes) -> np.ndarray:
        """Announce run `number` with an x of its own, which is returned."""
        x = np.random.default_rng(number).standard_normal(50).astype("<f4")
        run = run_id(number)
        RunStore(self.bucket, run).save_x(x)
        what = {
            "number": number,
            "run": run,
            "attempt": 1,
            "x_shape": (50,),
            "x_dtype": "<f4",
            "x_digest": array_digest(x),
        }
        announce(self.bucket, SESSION, Announcement(**what | changes))
        return x

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.time += seconds
        while self.script and self.script[0][0] <= self.time:
            self.script.pop(0)[1]()

    def run(self) -> dict:
        resident = Resident(
            self.bucket,
            self.task,
            lambda: self.limit - self.time,
            cold=True,
            now=lambda: self.time,
            sleep=self.sleep,
        )
        return resident.run()

    def answer(self, number: int) -> np.ndarray:
        return decode_array(self.bucket.objects[keys.result_key(run_id(number), 3)].body)

    def answered(self, number: int) -> bool:
        return keys.result_key(run_id(number), 3) in self.bucket.objects

    def end(self, number: int) -> None:
        announce(self.bucket, SESSION, Announcement(number=number, ended=True))

    def gets(self, part: str) -> int:
        return sum(kind == "get" and part in key for kind, key in self.bucket.requests)


def test_runs_are_served_with_blocks_that_are_read_once():
    stage = Stage()
    x = {1: stage.announce(1)}
    for number in (2, 3):
        stage.at(number * 1.0, lambda number=number: x.update({number: stage.announce(number)}))
    stage.at(4.0, lambda: stage.end(4))
    assert stage.run() | {"worker": 3} == {
        "state": "ended",
        "reason": "session",
        "served": 3,
        "session": SESSION,
        "worker": 3,
    }
    for number in (1, 2, 3):
        np.testing.assert_allclose(
            stage.answer(number), stage.blocks[0].astype("f8") @ x[number], rtol=1e-4, atol=1e-5
        )
    assert stage.gets("/coded/") == 3  # tiles of the block, once
    assert stage.gets("x.npy") == 3
    looks = sum(
        AnswerMetadata.from_metadata(
            stage.bucket.objects[keys.result_key(run_id(n), 3)].metadata
        ).polls
        for n in (1, 2, 3)
    )
    assert 10 < looks < stage.gets("latest.json") < 60
    # a stop is looked for only where nobody knows how old the announcement is
    assert sum(kind == "list" for kind, _ in stage.bucket.requests) == 1


def test_a_short_x_that_is_announced_is_not_read_again():
    stage = Stage()
    x = stage.announce(1)
    body = stage.bucket.objects.pop(keys.x_key(run_id(1))).body
    stage.announce(2, x=body, run=run_id(1), x_digest=array_digest(x))
    stage.at(1.0, lambda: stage.announce(3, x=body))  # of another x than the digest says
    stage.at(2.0, lambda: stage.end(4))
    assert stage.run()["served"] == 2
    np.testing.assert_allclose(
        stage.answer(1), stage.blocks[0].astype("f8") @ x, rtol=1e-4, atol=1e-5
    )
    assert stage.gets("x.npy") == 0
    assert RunStore(stage.bucket, run_id(3)).get_error(3, 1).type == "WrongInput"


def test_only_the_newest_run_is_served():
    stage = Stage()
    stage.announce(1)

    def both():
        stage.announce(2)
        stage.announce(3)

    stage.at(1.0, both)
    stage.at(2.0, lambda: stage.end(4))
    assert stage.run()["served"] == 2
    assert stage.answered(1) and not stage.answered(2) and stage.answered(3)


def test_an_older_announcement_than_the_last_one_is_nothing_new():
    stage = Stage()
    stage.announce(5)
    stage.at(1.0, lambda: stage.announce(4))
    stage.at(2.0, lambda: stage.end(6))
    assert stage.run()["served"] == 1 and not stage.answered(4)


def test_the_same_run_is_served_again_only_at_a_higher_attempt():
    stage = Stage()
    stage.announce(1)
    again = {"run": run_id(1), "x_digest": array_digest(RunStore(stage.bucket, run_id(1)).load_x())}

    def replace_others():
        RunStore(stage.bucket, run_id(1)).delete_results([3])
        stage.announce(2, **again, oldest={5: 2})

    stage.at(1.0, replace_others)
    stage.at(2.0, lambda: stage.announce(3, **again, asked={3: Asked(attempt=2)}))
    stage.at(3.0, lambda: stage.end(4))
    assert stage.run()["served"] == 2
    metadata = stage.bucket.objects[keys.result_key(run_id(1), 3)].metadata
    assert AnswerMetadata.from_metadata(metadata).attempt == 2


def test_who_is_not_asked_does_nothing_and_who_is_replaced_ends():
    stage = Stage()
    stage.announce(1, attempt=None, asked={2: Asked(attempt=1)})
    stage.at(1.0, lambda: stage.announce(2, oldest={3: 2}))
    assert stage.run()["reason"] == "replaced"
    assert not stage.answered(1) and not stage.answered(2)


def test_an_idle_resident_ends_and_one_with_work_does_not():
    stage = Stage(idle_limit=5.0)
    stage.announce(1)
    stage.at(4.0, lambda: stage.announce(2))
    assert stage.run()["reason"] == "idle"
    assert 9.0 < stage.time < 9.0 + 2 * SLOWEST


def test_a_resident_without_any_announcement_ends_too():
    stage = Stage(idle_limit=5.0)
    assert stage.run()["reason"] == "idle"
    assert 5.0 < stage.time < 5.0 + 2 * SLOWEST


def test_it_ends_before_the_time_limit():
    stage = Stage(limit=30.0, idle_limit=100.0)
    stage.announce(1)
    assert stage.run()["reason"] == "time"
    assert RESERVE - SLOWEST <= 30.0 - stage.time <= RESERVE


def test_a_run_that_was_stopped_before_the_resident_came_to_it_is_not_served():
    stage = Stage()
    stage.announce(1)
    RunStore(stage.bucket, run_id(1)).put_stop(1)  # long before: nobody knows when it was announced
    stage.at(1.0, lambda: stage.announce(2))
    stage.at(2.0, lambda: stage.end(3))
    stage.run()
    assert not stage.answered(1) and stage.answered(2)
    assert [key for kind, key in stage.bucket.requests if kind == "list"] == [
        keys.stop_prefix(run_id(1))
    ]


def test_several_blocks_are_kept_and_only_the_missing_ones_are_asked_for():
    stage = Stage(subtasks=3)
    x = stage.announce(1, asked={3: Asked(attempt=1, todo=(0, 2))})
    stage.at(1.0, lambda: stage.announce(2))
    stage.at(2.0, lambda: stage.end(3))
    stage.run()
    assert stage.gets("/coded/") == 9
    parts = RunStore(stage.bucket, run_id(1)).list_parts()
    assert set(parts) == {(3, 0, 0), (3, 2, 2)}
    body = stage.bucket.objects[keys.part_key(run_id(1), 3, 2, 2)].body
    np.testing.assert_allclose(
        decode_array(body), stage.blocks[2].astype("f8") @ x, rtol=1e-4, atol=1e-5
    )
    assert len(RunStore(stage.bucket, run_id(2)).list_parts()) == 3
    assert stage.gets("x.npy") == 2


def test_a_missing_block_is_told_to_the_run_that_needs_it():
    stage = Stage()
    stage.announce(1)
    stage.bucket.delete([stage.task.work.tile_key(1)])
    assert stage.run()["error"]["type"] == "TileMissing"
    assert not RunStore(stage.bucket, RUN).get_error(3, 1).fatal


def test_of_several_blocks_the_others_are_multiplied():
    stage = Stage(subtasks=3)
    stage.announce(1)
    stage.bucket.delete([stage.task.work.tile_key(1, 1)])
    stage.at(1.0, lambda: stage.end(2))
    assert stage.run()["served"] == 1
    store = RunStore(stage.bucket, run_id(1))
    assert set(store.list_parts()) == {(3, 0, 0), (3, 2, 2)}
    assert store.get_error(3, 1).type == "TileMissing"


def test_an_announcement_that_may_not_be_read_is_a_fatal_error():
    stage = Stage()
    stage.announce(1)

    def deny(kind, key):
        if key.endswith("latest.json"):
            raise AccessDenied("not allowed")

    stage.bucket.before = deny
    assert stage.run()["error"]["type"] == "AccessDenied"
    stage.bucket.before = lambda kind, key: None
    assert RunStore(stage.bucket, RUN).get_error(3, 1).fatal


def test_a_store_out_of_service_is_waited_for():
    stage = Stage()
    stage.announce(1)

    def busy(kind, key):
        if kind == "get" and key.endswith("latest.json") and 1.0 < stage.time < 3.0:
            raise StoreUnavailable("SlowDown")

    stage.bucket.before = busy
    stage.at(2.0, lambda: stage.announce(2))
    stage.at(4.0, lambda: stage.end(3))
    assert stage.run()["served"] == 2


def test_an_error_in_one_run_is_told_to_it_and_the_next_run_is_served():
    stage = Stage()
    stage.announce(1, x_digest="sha256:other")
    stage.at(1.0, lambda: stage.announce(2))
    stage.at(2.0, lambda: stage.end(3))
    stage.run()
    assert RunStore(stage.bucket, run_id(1)).get_error(3, 1).type == "WrongInput"
    assert stage.answered(2)


def test_the_handler_takes_the_event(monkeypatch):
    stage = Stage()
    stage.announce(1)
    stage.end(2)
    monkeypatch.setattr(app, "_bucket", stage.bucket)
    assert app.handler(stage.task.to_event(), Context())["reason"] == "session"


@pytest.mark.parametrize(
    "change",
    [
        {"session": "x"},
        {"generation": 0},
        {"idle_limit": 0},
        {"idle_limit": None},
        {"worker": 8},
        {"version": 2},
    ],
)
def test_a_bad_event_is_refused(monkeypatch, change):
    stage = Stage()
    monkeypatch.setattr(app, "_bucket", stage.bucket)
    answer = app.handler(stage.task.to_event() | change, Context())
    assert answer["state"] == "refused" and next(iter(change)) in answer["error"]["message"]
    assert stage.bucket.requests == []


def test_an_event_is_small_and_an_announcement_that_does_not_fit_is_refused():
    stage = Stage()
    assert len(str(stage.task.to_event())) < 1000
    assert ResidentTask.from_event(stage.task.to_event()) == stage.task
    wrong = Announcement(
        number=1, run=RUN, attempt=1, x_shape=(49,), x_dtype="<f4", x_digest="sha256:1"
    )
    with pytest.raises(TaskRefused, match="x_shape"):
        stage.task.task(wrong)


def test_looks_are_frequent_when_an_announcement_is_due():
    polling = Polling(8)
    pauses = [polling.pause(t) for t in (0.0, 0.01, 0.03)]
    assert pauses == sorted(pauses) and pauses[0] == FASTEST
    for at in (0.0, 1.0, 2.0):
        polling.announced(at, at)
    assert polling.pause(2.1) == polling.before(2.1) == ASLEEP
    assert polling.pause(2.85) == pytest.approx(0.05)  # to where the next one may come early
    assert polling.before(2.95) == 0.0
    assert polling.pause(2.95) == pytest.approx(0.1)
    later = [polling.pause(4.0) for _ in range(20)]
    assert later == sorted(later) and later[-1] == SLOWEST
    assert Polling(2750).pause(0.0) == pytest.approx(0.5)  # 5,500 GETs a second for all of them


@pytest.mark.parametrize("skew", [-1e9, -3.0, 0.0, 7.5])
def test_one_that_was_seen_late_does_not_make_the_next_ones_late(skew):
    polling = Polling(8)  # our clock is `skew` ahead of the coordinator's
    for sent, late in [(0.0, 0.4), (1.0, 0.5), (2.0, 0.01), (3.0, 0.3)]:
        polling.announced(sent + late + skew, sent)
    at = 3.6 + skew
    assert at + polling.before(at) == pytest.approx(3.9 + 0.02 + skew, abs=0.01)


def test_a_series_that_became_quick_is_followed_at_once():
    polling = Polling(8)
    for sent in (0.0, 5.0, 10.0, 15.0, 15.2):
        polling.announced(sent, sent)
    assert polling.before(15.2) == pytest.approx(0.18)


def test_the_gap_of_cold_starts_is_not_learnt():
    polling = Polling(8)
    polling.announced(9.0, 0.0)
    polling.announced(9.1, 9.1)
    assert polling.before(9.1) == 0.0


@pytest.mark.parametrize("step", [-3600.0, 3600.0])
def test_a_coordinators_clock_that_is_set_is_noticed(step):
    polling = Polling(8)
    for sent in (0.0, 1.0, 2.0, 3.0):
        polling.announced(sent, sent)
    for sent in (4.0, 5.0, 6.0, 7.0, 8.0):
        polling.announced(sent, sent + step)
    assert 8.0 + polling.before(8.4) + 0.4 == pytest.approx(8.9, abs=0.05)
