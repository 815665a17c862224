"""Whole optimisations with evaluations in this process."""

from __future__ import annotations

import numpy as np
import pytest

from blockstore.keys import new_run_id
from blockstore.optimization_keys import answer_key
from blockstore.optimizations import OptimizationStore
from coordinator.ports import InvokeReport
from polarlambda.errors import PlatformError
from polarlambda.optimization.domain import make_domain
from polarlambda.optimization.options import Options
from polarlambda.optimization.run import OptimizationRun
from polarlambda.optimization.state import Figures, State
from polarlambda.optimization.steps import Stepper
from tests.memory_bucket import MemoryBucket
from tests.optimization.fake import make_place

CENTRE = np.array([1.0, -2.0, 0.5, 3.0, 0.0])
WEIGHTS = np.array([1.0, 2.0, 0.5, 1.0, 3.0])
NAME = new_run_id(1_700_000_000_000, b"0123456789")


def bowl(theta, seed):
    return float(WEIGHTS @ (theta - CENTRE) ** 2)


def begin(place, options, start=(0.0,) * 5, bounds=None, scale=None, **more):
    theta = np.array(start, dtype=float)
    stepper = Stepper(options.optimizer, options.rate, options.momentum)
    domain = make_domain(theta, bounds, scale)
    options.check(theta.size)
    state = State(theta, theta, stepper.start(theta.size), domain, Figures())
    store = OptimizationStore(place.bucket, NAME)
    return OptimizationRun(store, place, "problems:bowl", options, state, **more)


def carry_on(place, options, **more):
    """What `resume_optimization` does, without the platform."""
    store = OptimizationStore(place.bucket, NAME)
    done = store.latest_checkpoint()
    if done is None:
        return begin(place, options, **more)
    array, metadata = store.load_checkpoint(done)
    state = State.from_array(array, Figures.from_metadata(metadata))
    return OptimizationRun(store, place, "problems:bowl", options, state, **more)


@pytest.mark.parametrize(
    "given",
    [
        {"rate": 0.3},
        {"rate": 0.3, "code": "polar", "workers": 7},
        {"optimizer": "sgd", "rate": 0.08, "momentum": 0.5},
        {"rate": 0.3, "directions": "structured"},
        {"rate": 0.3, "directions": "finite-differences"},
        {"rate": 0.3, "directions": "gaussian", "workers": 16},
        {"rate": 0.4, "block": 3, "iterations": 60},
        {"rate": 0.3, "control": "trust"},
        {"rate": 0.3, "estimator": "decode"},
    ],
    ids=str,
)
def test_every_way_finds_the_least_value(given):
    options = Options(**({"iterations": 35} | given))
    place, _ = make_place(bowl)
    result = begin(place, options).run()
    assert result.state == "finished"
    assert result.met
    assert result.figures.iteration == options.iterations
    assert bowl(result.theta, 0) < 0.02 * bowl(np.zeros(5), 0)


def test_one_step_is_along_the_exact_gradient_though_workers_are_dead():
    options = Options(iterations=1, optimizer="sgd", rate=0.01, workers=8, sigma=1e-3)
    place, _ = make_place(bowl, dead=lambda round_, workers: (1, 4, 6))
    run = begin(place, options)
    run.run()
    # a quadratic's antithetic differences have no error in sigma
    np.testing.assert_allclose(run.state.theta, 0.01 * 2 * WEIGHTS * CENTRE, rtol=1e-6, atol=1e-9)
    figures = run.history[-1]
    assert figures.exact
    assert (figures.arrivals, figures.silent, figures.failures) == (5, 3, 0)


def test_fewer_answers_than_parameters_still_lead_downhill():
    options = Options(iterations=40, rate=0.15, workers=8, wait="share=0.5")
    place, _ = make_place(bowl, dead=lambda round_, n: range(round_ % 2, 8, 2))
    result = begin(place, options).run()
    assert not result.history[-1].exact
    assert bowl(result.theta, 0) < 0.2 * bowl(np.zeros(5), 0)


def test_maximising_is_minimising_the_negative():
    def negative(theta, seed):
        return -bowl(theta, seed)

    options = Options(iterations=10)
    down = begin(make_place(bowl)[0], options).run()
    up = begin(make_place(negative)[0], Options(iterations=10, maximize=True)).run()
    np.testing.assert_allclose(up.theta, down.theta)


@pytest.mark.parametrize(
    ("fault", "word"),
    [
        (lambda: 1 / 0, "ZeroDivisionError"),
        (lambda: None, "it must return a number"),
        (lambda: float("nan"), "must be finite"),
        (lambda: float("inf"), "must be finite"),
        (lambda: "3", "it must return a number"),
    ],
)
def test_a_faulty_evaluation_is_an_erasure_that_is_counted_and_shown(fault, word):
    seen = []

    def sometimes(theta, seed):
        seen.append(seed)
        return fault() if seed % 5 == 0 else bowl(theta, seed)

    options = Options(iterations=25, rate=0.3, workers=16)
    place, _ = make_place(sometimes)
    result = begin(place, options).run()
    assert result.figures.failed_evaluations > 10
    assert any(word in figures.failure for figures in result.history)
    assert bowl(result.theta, 0) < 0.1 * bowl(np.zeros(5), 0)


def test_when_everything_fails_the_objectives_own_words_end_it():
    def broken(theta, seed):
        if theta @ theta > 0.3:
            raise RuntimeError("the simulator has no licence")
        return bowl(theta, seed)

    place, _ = make_place(broken)
    result = begin(place, Options(iterations=100)).run()
    assert result.state == "failed"
    assert not result.met
    assert "the simulator has no licence" in result.message
    assert "all evaluations failed" in result.message
    assert 0 < result.figures.iteration < 100
    assert np.isfinite(result.theta).all()


def test_an_objective_that_never_answers_says_what_to_change():
    place, _ = make_place(bowl, dead=lambda round_, workers: range(workers))
    result = begin(place, Options(iterations=5)).run()
    assert result.state == "failed"
    assert "within the worker's time limit" in result.message


def test_a_function_that_cannot_be_invoked_ends_it_at_once():
    refused = InvokeReport(0, 1, "InvokeDenied", "not allowed", fatal=True)
    place, _ = make_place(bowl, refused=refused)
    result = begin(place, Options(iterations=5)).run()
    assert (result.state, result.message) == ("failed", "InvokeDenied: not allowed")


def test_points_never_leave_the_box():
    bounds = np.array([[0.0, 0.4], [-1, 0], [0, 2], [0, 4], [-0.5, 0.5]])

    def guarded(theta, seed):
        assert (theta >= bounds[:, 0]).all()
        assert (theta <= bounds[:, 1]).all()
        return bowl(theta, seed)

    place, _ = make_place(guarded)
    start = bounds.mean(axis=1)
    options = Options(iterations=30, rate=0.1, sigma=0.01)
    result = begin(place, options, start=start, bounds=bounds).run()
    assert result.figures.failed_evaluations == 0
    nearest = np.clip(CENTRE, bounds[:, 0], bounds[:, 1])
    np.testing.assert_allclose(result.theta, nearest, atol=0.1)


@pytest.mark.parametrize(
    ("options", "state", "word", "iterations"),
    [
        (Options(iterations=3), "finished", "3 iterations", 3),
        (Options(evaluations=100, workers=8), "finished", "evaluations", None),
        (Options(dollars=0.01, workers=8), "finished", "dollars", 12),
        (Options(target=5.0, rate=0.1), "target", "has reached 5", None),
    ],
)
def test_limits_end_it_and_say_so(options, state, word, iterations):
    place, _ = make_place(bowl)
    result = begin(place, options).run()
    assert result.state == state
    assert word in result.message
    assert result.met
    last = result.figures
    if iterations is not None:
        assert last.iteration == iterations
    if options.evaluations is not None:
        assert 0 < last.evaluations <= options.evaluations
    if options.dollars is not None:
        assert last.dollars <= options.dollars + 1e-12


def test_a_target_that_is_not_reached_is_not_met():
    place, _ = make_place(bowl)
    result = begin(place, Options(iterations=2, target=1e-6)).run()
    assert (result.state, result.met) == ("finished", False)


def test_final_evaluations_compare_the_last_with_the_best_on_fresh_seeds():
    def noisy(theta, seed):
        return bowl(theta, seed) + np.random.default_rng(seed).standard_normal()

    place, workers = make_place(noisy)
    result = begin(place, Options(iterations=20, rate=0.3, final=50)).run()
    assert result.final.evaluations == 50
    assert result.final.mean == pytest.approx(bowl(result.theta, 0), abs=4 * result.final.error)
    used = {task.round for task in workers.done}
    assert {number for number in used if number >= 500_000} == {500_040, 500_041}


def test_common_seeds_are_common_and_fresh_ones_are_not():
    for kind, distinct in (("common", 1), ("fresh", 8)):
        seeds = []

        def watching(theta, seed, seeds=seeds):
            seeds.append(seed)
            return bowl(theta, seed)

        place, _ = make_place(watching)
        begin(place, Options(iterations=1, workers=8, seeds=kind, wait="all")).run()
        assert len(seeds) == 16
        assert len(set(seeds)) == distinct
        assert all(0 <= seed < 2**31 for seed in seeds)


def test_a_coordinator_killed_at_any_request_is_resumed_to_the_same_theta():
    options = Options(iterations=2, rate=0.1, workers=8)
    place, _ = make_place(bowl)
    expected = begin(place, options).run()
    killed = 0
    while True:
        bucket = MemoryBucket()
        place, workers = make_place(bowl, bucket=bucket)
        own = []

        def before(kind, key, workers=workers, own=own, fatal=killed):
            if not workers.busy:
                own.append(key)
                if len(own) > fatal:
                    raise ConnectionAbortedError("killed")

        bucket.before = before
        try:
            begin(place, options).run()
            break  # lived through all of its requests
        except ConnectionAbortedError:
            killed += 1
        bucket.before = lambda kind, key: None
        place, _ = make_place(bowl, bucket=bucket)
        resumed = carry_on(place, options).run()
        np.testing.assert_array_equal(resumed.theta, expected.theta)
        assert resumed.figures.iteration == 2
    assert killed > 30


def test_two_coordinators_do_not_interleave():
    options = Options(iterations=5)
    place, _ = make_place(bowl)
    first = begin(place, options)
    other, _ = make_place(bowl, bucket=place.bucket)

    def intrude(figures):
        if figures.iteration == 2:
            carry_on(other, Options(iterations=3)).run()

    first.on_iteration = intrude
    with pytest.raises(PlatformError, match="carried on by another process"):
        first.run()


def test_a_put_that_the_sdk_sent_twice_is_our_own():
    place, _ = make_place(bowl)
    put = place.bucket.put

    def twice(key, body, **options):
        done = put(key, body, **options)
        return done and put(key, body, **options) if "checkpoints/" in key else done

    place.bucket.put = twice
    assert begin(place, Options(iterations=4)).run().figures.iteration == 4


def test_a_cancelled_one_ends_after_its_iteration_and_can_be_resumed():
    place, _ = make_place(bowl)
    store = OptimizationStore(place.bucket, NAME)
    run = begin(
        place, Options(iterations=6), on_iteration=lambda f: f.iteration == 3 and store.cancel()
    )
    result = run.run()
    assert (result.state, result.figures.iteration) == ("cancelled", 3)
    store.withdraw_cancel()
    whole = begin(make_place(bowl)[0], Options(iterations=6)).run()
    np.testing.assert_array_equal(carry_on(place, Options(iterations=6)).run().theta, whole.theta)


def test_ctrl_c_keeps_the_last_checkpoint():
    place, _ = make_place(bowl)

    def stop(figures):
        if figures.iteration == 2:
            raise KeyboardInterrupt

    result = begin(place, Options(iterations=6), on_iteration=stop).run()
    assert (result.state, result.met) == ("stopped", False)
    assert OptimizationStore(place.bucket, NAME).latest_checkpoint() == 2


def test_a_damaged_answer_is_an_erasure_that_is_read_once():
    place, _ = make_place(bowl, dead=lambda round_, n: [5])
    key = answer_key(NAME, 0, 2)
    place.bucket.put(key, b"{}")
    result = begin(place, Options(iterations=1, workers=8, wait="all")).run()
    figures = result.history[0]
    assert (figures.arrivals, figures.failures, figures.silent) == (6, 1, 1)
    assert figures.exact
    assert place.bucket.requests.count(("get", key)) == 1
