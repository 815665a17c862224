"""The objective's handler: a user's function at two points, whatever that function does."""

from __future__ import annotations

import json
import sys
import types

import numpy as np
import pytest

from blockstore.arrays import array_digest
from blockstore.errors import AccessDenied
from blockstore.evaluations import EvaluationTask, Round
from blockstore.keys import new_run_id
from blockstore.rounds import RoundStore
from functions.objective import app
from polarcodes.directions import make_directions
from tests.memory_bucket import MemoryBucket

NAME = new_run_id(1_700_000_000_000, b"0123456789")
TASK = EvaluationTask(
    optimization=NAME, round=2, worker=3, workers=6, objective="mine:score", attempt=1
)


@pytest.fixture
def bucket(monkeypatch):
    made = MemoryBucket()
    monkeypatch.setattr(app, "_bucket", made)
    monkeypatch.setenv("POLARLAMBDA_BUCKET", "memory")
    monkeypatch.setenv("POLARLAMBDA_OBJECTIVE_CALLABLE", "mine:score")
    return made


@pytest.fixture
def mine(monkeypatch):
    """A module `mine` whose `score` the test sets."""
    module = types.ModuleType("mine")
    monkeypatch.setitem(sys.modules, "mine", module)
    module.score = lambda theta, seed: float(theta.sum())
    return module


def prepare(bucket, coordinates=None, directions=True, **more):
    made = make_directions("coded", parameters=2 if coordinates else 4, count=6, seed=1)
    point = np.stack([np.arange(4.0), np.full(4, 0.5)])
    described = Round(
        number=2,
        workers=6,
        parameters=4,
        directions=made.to_manifest() if directions else None,
        coordinates=coordinates,
        seed=9,
        seeds="fresh",
        point_digest=array_digest(point),
        **more,
    )
    store = RoundStore(bucket, NAME, 2)
    store.save(described, point)
    return store, described, made.vectors([3])[0]


def test_it_answers_with_the_objective_at_both_points_of_its_direction(bucket, mine):
    store, _, direction = prepare(bucket)
    assert app.handler(TASK.to_event(), None) == {"state": "answered"}
    expected = 6.0 + np.array([0.5, -0.5]) * direction.sum()
    answer = store.get_answer(3)
    np.testing.assert_allclose(answer.values, expected)
    assert answer.seconds >= 0


def test_a_block_moves_its_own_parameters_alone(bucket, mine):
    seen = []
    mine.score = lambda theta, seed: seen.append(theta) or 0.0
    _, _, direction = prepare(bucket, coordinates=(1, 3))
    app.handler(TASK.to_event(), None)
    move = np.zeros(4)
    move[[1, 3]] = 0.5 * direction
    np.testing.assert_allclose(seen, [np.arange(4) + move, np.arange(4) - move])


def test_arguments_and_the_seed_reach_the_objective(bucket, mine):
    seen = []

    def score(theta, seed, image):
        seen.append((seed, image))
        return 1

    mine.score = score
    prepare(bucket, arguments={"image": 7})
    app.handler(TASK.to_event(), None)
    assert len(set(seen)) == 1
    assert seen[0][1] == 7


def test_the_point_itself_is_evaluated_once_where_there_is_no_direction(bucket, mine):
    store, _, _ = prepare(bucket, directions=False)
    app.handler(TASK.to_event(), None)
    assert store.get_answer(3).values == (6.0,)


def test_the_first_answer_of_a_worker_stays(bucket, mine):
    store, _, _ = prepare(bucket)
    app.handler(TASK.to_event(), None)
    first = store.get_answer(3)
    mine.score = lambda theta, seed: 0.0
    assert app.handler(TASK.to_event(), None) == {"state": "late"}
    assert store.get_answer(3) == first


def test_a_round_that_has_ended_is_not_evaluated(bucket, mine):
    mine.score = lambda theta, seed: pytest.fail("it was evaluated")
    store, described, _ = prepare(bucket)
    store.stop(described)
    assert app.handler(TASK.to_event(), None) == {"state": "stopped"}


def leave(theta, seed):
    sys.exit("no licence")


@pytest.mark.parametrize(
    ("score", "kind", "word"),
    [
        (lambda theta, seed: 1 / 0, "ZeroDivisionError", "division"),
        (lambda theta, seed: None, "NoValue", "it must return a number"),
        (lambda theta, seed: float("nan"), "NoValue", "finite"),
        (lambda theta, seed: np.array([1.0, 2.0]), "NoValue", "a number"),
        (lambda theta, seed: True, "NoValue", "a number"),
        (leave, "SystemExit", "no licence"),
    ],
)
def test_what_is_no_number_is_a_failure_with_its_own_words(bucket, mine, score, kind, word):
    store, _, _ = prepare(bucket)
    mine.score = score
    assert app.handler(TASK.to_event(), None)["state"] == "failed"
    failure = store.get_failure(3, 1)
    assert (failure.type, failure.fatal) == (kind, False)
    assert word in failure.message
    assert store.answered() == set()


@pytest.mark.parametrize("value", [np.float32(1.5), np.array([1.5]), np.int64(1), 2])
def test_numbers_of_any_kind_are_numbers(bucket, mine, value):
    store, _, _ = prepare(bucket)
    mine.score = lambda theta, seed: value
    assert app.handler(TASK.to_event(), None)["state"] == "answered"
    assert (
        json.loads(json.dumps(store.get_answer(3).to_json()))["values"]
        == [float(np.squeeze(value))] * 2
    )


def test_another_objective_than_it_was_built_with_is_fatal(bucket, mine):
    store, _, _ = prepare(bucket)
    event = TASK.to_event() | {"objective": "other:score"}
    assert app.handler(event, None)["type"] == "ObjectiveMissing"
    assert store.get_failure(3, 1).fatal


@pytest.mark.parametrize(
    ("name", "word"),
    [("nothere:score", "No module"), ("mine:nothing", "nothing"), ("mine", "must be")],
)
def test_an_objective_that_cannot_be_imported_is_fatal(bucket, mine, monkeypatch, name, word):
    monkeypatch.setenv("POLARLAMBDA_OBJECTIVE_CALLABLE", name)
    store, _, _ = prepare(bucket)
    app.handler(TASK.to_event() | {"objective": name}, None)
    failure = store.get_failure(3, 1)
    assert failure.fatal
    assert word in failure.message


def test_a_denied_read_is_fatal_and_a_damaged_point_is_not(bucket, mine):
    store, _, _ = prepare(bucket)

    def deny(kind, key):
        if kind == "get" and key.endswith("round.json"):
            raise AccessDenied("no")

    bucket.before = deny
    app.handler(TASK.to_event(), None)
    bucket.before = lambda kind, key: None
    assert store.get_failure(3, 1).fatal
    bucket.objects.clear()
    store, _, _ = prepare(bucket)
    key = next(key for key in bucket.objects if key.endswith("point.npy"))
    bucket.objects[key].body = bucket.objects[key].body[:-8] + b"\0" * 8
    assert app.handler(TASK.to_event(), None)["type"] == "CorruptObject"
    assert not store.get_failure(3, 1).fatal


@pytest.mark.parametrize("field", ["version", "optimization", "round", "worker", "objective"])
def test_an_event_that_lacks_something_is_refused_without_a_traceback(bucket, field):
    event = TASK.to_event()
    del event[field]
    answer = app.handler(event, None)
    assert answer["state"] == "refused"
    assert field in answer["message"]
