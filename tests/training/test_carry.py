"""Trainings that are killed, resumed, raced and read back, in memory."""

from __future__ import annotations

import json

import numpy as np
import pytest

from blockstore import training_keys as keys
from blockstore.errors import NameRefused, ObjectMissing, RunRecordError
from blockstore.training_records import TrainingSpec, TrainingStatus
from blockstore.trainings import Facts, TrainingStore, TrainingTaken, delete_training
from polarlambda.errors import PlatformError
from polarlambda.training.gradients import ProductFailed
from tests.memory_bucket import MemoryBucket
from tests.training.carried import TRAINING, Case, Killed

CASES = [
    {},
    {"form": "gram"},
    {"model": "multinomial", "l2": 0.01},
    {"step": 0.2, "momentum": "nesterov"},
    {"step": 0.05, "momentum": "heavy-ball"},
    {"momentum": "heavy-ball", "intercept": False},
]


@pytest.mark.parametrize("asked", CASES)
def test_a_process_killed_at_any_request_changes_nothing(asked):
    whole = Case(**asked)
    whole.create()
    end = whole.carrier().run()
    assert end.state == "iterations" and end.met and end.iteration == 6
    requests = len(whole.bucket.requests)
    assert requests > 10
    for death in range(requests):
        case = Case(**asked)
        left = [death]

        def die(kind, key, left=left):
            left[0] -= 1
            if left[0] < 0:
                raise Killed

        case.bucket.before = die
        try:
            case.create()
            case.carrier().run()
        except Killed:
            pass
        case.bucket.before = lambda kind, key: None
        try:
            case.store.load_spec()
        except ObjectMissing:  # it died before the training was there
            continue
        again = case.carrier().run()
        assert again.loss == pytest.approx(end.loss, rel=1e-10)
        np.testing.assert_allclose(again.theta, end.theta, rtol=1e-8, atol=1e-12)
        assert [facts.iteration for facts in again.history] == list(range(7))
        np.testing.assert_allclose(
            [facts.loss for facts in again.history], [facts.loss for facts in end.history]
        )
        assert case.store.get_status().state == "iterations"
        np.testing.assert_array_equal(case.store.get_theta(), again.theta)


def test_a_process_killed_in_every_iteration_arrives_at_the_same_place():
    whole = Case(stop={"iterations": 8})
    whole.create()
    end = whole.carrier().run()
    case = Case(stop={"iterations": 8})
    case.create()

    def die(at):
        raise Killed

    for _ in range(9):
        with pytest.raises(Killed):
            case.carrier(on_iterate=die).run()
    again = case.carrier().run()
    assert again.loss == pytest.approx(end.loss, rel=1e-10)
    assert len({facts.writer for facts in again.history}) == 9


def test_two_processes_do_not_interleave():
    case = Case()
    case.create()
    other = []

    def race(at):
        if at.iteration == 2:
            other.append(case.carrier().run())

    with pytest.raises(TrainingTaken, match="another process"):
        case.carrier(on_iterate=race).run()
    assert other[0].state == "iterations"
    history = [case.store.get_facts(i) for i in case.store.list_checkpoints()]
    assert {facts.writer for facts in history[3:]} == {history[-1].writer}
    assert case.store.get_status().state == "iterations"  # the loser changed nothing


def test_a_put_that_was_sent_twice_is_our_own():
    case = Case()
    case.create()
    put = case.bucket.put

    def twice(key, body, **options):
        done = put(key, body, **options)
        return done and put(key, body, **options) if "checkpoints/" in key else done

    case.bucket.put = twice
    assert case.carrier().run().iteration == 6


def test_a_limit_can_be_raised_when_it_goes_on():
    case = Case()
    case.create()
    assert case.carrier(iterations=3).run().iteration == 3
    more = case.carrier(iterations=None, gradient_norm=1e-9).run()
    assert (more.state, more.met) == ("converged", True)
    assert case.carrier(iterations=None, gradient_norm=1e-9).run().iteration == more.iteration


def test_interrupted_it_keeps_what_there_is_and_goes_on():
    case = Case()
    case.create()

    def interrupt(at):
        if at.iteration == 3:
            raise KeyboardInterrupt

    stopped = case.carrier(on_iterate=interrupt).run()
    assert (stopped.state, stopped.met, stopped.iteration) == ("stopped", False, 3)
    assert case.store.get_status().state == "stopped"
    assert case.carrier().run().iteration == 6


@pytest.mark.parametrize("state", ["failed", "stopped"])
def test_a_product_that_fails_is_told_with_what_there_is(state):
    case = Case()
    case.create()
    carrier = case.carrier()
    transposed = carrier.descent.source._source._transposed

    def fails(x, tolerance=0.0):
        if transposed.count == 3:
            raise ProductFailed("run r: too few answers", state)
        return transposed(x, tolerance)

    carrier.descent.source._source._transposed = fails
    ended = carrier.run()
    assert (ended.state, ended.iteration, ended.message) == (state, 2, "run r: too few answers")
    assert case.carrier().run().iteration == 6


@pytest.mark.parametrize(
    ("state", "error"), [("failed", PlatformError), ("stopped", KeyboardInterrupt)]
)
def test_without_any_gradient_the_training_says_so(state, error):
    case = Case()
    case.create()
    carrier = case.carrier()

    def fails(x, tolerance=0.0):
        raise ProductFailed("run r: no answers", state)

    carrier.descent.source._source._transposed = fails
    with pytest.raises(error, match="resume" if state == "failed" else None):
        carrier.run()
    assert case.store.get_status().state == state
    assert case.carrier().run().iteration == 6


def test_a_diverged_training_gives_its_best_checkpoint_also_of_an_earlier_process():
    X = Case().X
    curvature = np.linalg.eigvalsh(X.T @ X).max() / len(X)
    case = Case(step=2.1 / curvature, momentum="none", stop={"iterations": 600})
    case.create()

    def die(at):
        if at.iteration == 20:
            raise Killed

    with pytest.raises(Killed):
        case.carrier(on_iterate=die).run()
    ended = case.carrier().run()
    assert ended.state == "diverged" and not ended.met and "smaller step" in ended.message
    losses = [facts.loss for facts in ended.history]
    assert ended.loss == min(losses) and ended.iteration == losses.index(min(losses)) < 20
    np.testing.assert_array_equal(case.store.get_theta(), ended.theta)
    assert np.isfinite(ended.theta).all()


def test_checkpoints_hold_theta_itself_and_every_digit_of_the_facts():
    case = Case(form="gram")
    case.create()
    seen = []
    case.carrier(on_iterate=seen.append).run()
    for at in seen:
        facts, state = case.store.get_checkpoint(at.iteration)
        np.testing.assert_array_equal(state[0], at.theta)
        assert (facts.loss, facts.norm, facts.dollars) == (at.loss, at.norm, at.dollars)
    w, b = seen[-1].theta[:-1], seen[-1].theta[-1:]
    residual = case.X @ w + b - case.targets.values
    assert (residual**2).sum() / (2 * len(case.X)) == pytest.approx(seen[-1].loss, rel=1e-9)


def test_records_read_back_and_damaged_ones_are_refused():
    case = Case(model="multinomial")
    case.create()
    spec = case.store.load_spec()
    assert spec == case.spec
    np.testing.assert_array_equal(case.store.load_labels(), case.labels)
    record = json.loads(json.dumps(spec.to_json()))
    assert TrainingSpec.from_json(record) == spec
    for field in record:
        with pytest.raises(RunRecordError, match=field):
            TrainingSpec.from_json({k: v for k, v in record.items() if k != field})
    for field, value in (("form", "round"), ("classes", ["a"]), ("notes", "x"), ("training", "t")):
        with pytest.raises(RunRecordError, match=field if field != "training" else "training id"):
            TrainingSpec.from_json({**record, field: value})
    with pytest.raises(RunRecordError, match="state"):
        TrainingStatus.from_json({"version": 1, "training": TRAINING, "state": "odd"})
    facts = Facts(1, 0.1, 0.2, 0.3, 1e-17, 0.0, 1.0, True, 0.0, 1.5, 0.25, ("a", "b"), "w")
    assert Facts.from_metadata(facts.to_metadata()) == facts
    for damage in ({"loss": "nan"}, {"loss": "x"}):
        with pytest.raises(RunRecordError, match="loss"):
            Facts.from_metadata({**facts.to_metadata(), **damage})


def test_a_training_begins_once_and_is_deleted_once():
    case = Case()
    case.create()
    with pytest.raises(TrainingTaken):
        case.create()
    assert delete_training(case.bucket, TRAINING) == 3
    for call in (lambda: delete_training(case.bucket, TRAINING), case.store.load_spec):
        with pytest.raises(ObjectMissing, match="no training"):
            call()
    with pytest.raises(NameRefused, match="trainings list"):
        TrainingStore(MemoryBucket(), "../x")
    with pytest.raises(ValueError, match="not the key"):
        keys.parse_checkpoint_key("trainings/a/spec.json")
