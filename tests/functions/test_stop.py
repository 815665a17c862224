"""When workers look for the stop marker: late ones before they start, all of them while they work.

The clock is the test's own: nothing here depends on how fast this machine is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from blockstore import keys
from blockstore.answers import AnswerMetadata
from blockstore.runs import RunStore
from blockstore.stops import FRESH, STOP_INTERVAL, is_fresh
from functions.worker import app
from tests.functions.coded_block import RUN, Context, make_block
from tests.functions.coded_pair import make_pair

NOW = 1_800_000_000.0


@dataclass
class Clock:
    """Stands in for the module `time` where workers ask how late it is."""

    at: float = NOW

    def time(self) -> float:
        return self.at

    monotonic = time


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr("functions.worker.stop.time", made)
    return made


@pytest.fixture
def made(monkeypatch, clock):
    rng = np.random.default_rng(2)
    block = make_block(rng.standard_normal((8, 50)), rng.standard_normal(50), (2, 50))
    monkeypatch.setattr(app, "_bucket", block.bucket)
    return block


def handle(made, **event):
    made.bucket.requests.clear()
    return app.handler({**made.task.to_event(), **event}, Context())["state"]


def looks(made) -> int:
    return [kind for kind, _ in made.bucket.requests].count("list")


def told(made) -> float:
    _, metadata = made.store.get_result(3)
    return AnswerMetadata.from_metadata(metadata).looks


@pytest.mark.parametrize(
    ("age", "fresh"), [(0.0, True), (FRESH, True), (FRESH + 0.01, False), (-0.01, False), (NOW, 0)]
)
def test_an_event_is_fresh_for_a_second_and_never_before_it_was_sent(age, fresh):
    assert is_fresh(NOW - age, NOW) == fresh


def test_a_worker_that_begins_at_once_makes_no_request_but_for_its_work(made):
    assert handle(made, sent=NOW - 0.3) == "answered"
    assert [kind for kind, _ in made.bucket.requests] == ["get"] * 5 + ["put"]
    assert told(made) == 0


@pytest.mark.parametrize("event", [{}, {"sent": NOW - 2.0}, {"sent": NOW + 60.0}])
def test_one_that_begins_late_or_does_not_know_looks_first(made, event):
    assert handle(made, **event) == "answered"
    assert made.bucket.requests[0] == ("list", keys.stop_prefix(RUN)) and looks(made) == 1
    assert told(made) == 1
    made.store.put_stop(1)
    assert handle(made, **event) == "stopped"
    assert [kind for kind, _ in made.bucket.requests] == ["list"], "nothing else was read"


def test_one_that_began_at_once_still_sees_the_marker_while_it_works(made, clock):
    def slow(kind, key):
        if kind == "get" and "coded" in key:
            clock.at += STOP_INTERVAL / 2 + 0.1
            made.bucket.objects.setdefault(stop, made.bucket.objects[keys.x_key(RUN)])

    stop = keys.stop_key(RUN, 1)
    made.bucket.before = slow
    assert handle(made, sent=NOW) == "stopped" and looks(made) == 1
    assert not made.store.list_results()


def test_later_tasks_of_a_worker_look_when_its_invocation_is_no_longer_fresh(made, clock):
    task = replace(made.task, subtasks=3, workers=8)
    for number in range(3):
        for tile in range(4):
            body = made.bucket.objects[made.task.tile_key(tile)].body
            made.bucket.put(task.tile_key(tile, number), body)

    def slow(kind, key):
        if kind == "put" and "results" in key:
            clock.at += 0.7

    made.bucket.before = slow
    made.bucket.requests.clear()
    assert app.handler({**task.to_event(), "sent": NOW}, Context())["state"] == "answered"
    assert looks(made) == 1, "the first two tasks begin within a second"
    parts = [keys.part_key(RUN, 3, number, number) for number in range(3)]
    metadata = [made.bucket.get_object(key)[1] for key in parts]
    assert [AnswerMetadata.from_metadata(each).looks for each in metadata] == [0, 0, 1]


def test_a_worker_of_two_factors_does_the_same(monkeypatch, clock):
    rng = np.random.default_rng(3)
    pair = make_pair(rng.standard_normal((7, 23)), rng.standard_normal((9, 23)), (7, 5), (9, 5))
    monkeypatch.setattr(app, "_bucket", pair.bucket)
    RunStore(pair.bucket, RUN).put_stop(1)
    assert handle(pair, sent=NOW - 5.0) == "stopped"
    assert handle(pair, sent=NOW - 0.5) == "answered" and looks(pair) == 0
