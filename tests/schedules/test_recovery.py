"""The incremental decoder against least squares, its weights, and the batched simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polarcodes import InvalidAnswers, InvalidCode
from polarcodes.schedules import Schedule, completion, make_schedule, shifted_exponential
from tests.schedules import oracles

SMALL = [
    ("cpgc", 4, 2),
    ("cpgc", 8, 3),
    ("uc-mmc", 6, 3),
    ("mcc", 7, 3),
    ("rcsc", 10, 3),
    ("gradient", 7, 3),
    ("gradient", 8, 4),
    ("searched", 20, 3),
]
CASES = st.sampled_from([make_schedule(*case) for case in SMALL])


@st.composite
def random_schedules(draw):
    """Tables of small integers: dense, sparse, singular."""
    load, workers, tasks = draw(st.tuples(st.integers(1, 3), st.integers(2, 6), st.integers(3, 6)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    while True:
        table = rng.integers(-2, 3, (load, workers, tasks)) * (
            rng.random((load, workers, tasks)) < draw(st.sampled_from([0.3, 0.6, 1.0]))
        )
        try:
            return Schedule("random", table, sending=draw(st.sampled_from(["each", "together"])))
        except InvalidCode:  # an empty or repeated task, or one that nobody does
            continue


def arrivals(schedule, seed):
    seconds = np.random.default_rng(seed).exponential(1.0, schedule.workers) + 0.1
    return [(k, j) for _, k, j in oracles.arrival_order(schedule, seconds)]


@settings(deadline=None)
@given(CASES | random_schedules(), st.integers(0, 2**32))
def test_at_every_moment_what_lies_in_the_row_space_is_recovered(schedule, seed):
    state = schedule.recovery()
    arrived = []
    for message in arrivals(schedule, seed)[:24]:
        before = state.rank
        news = state.add(*message)
        arrived.append(message)
        assert news == (state.rank > before)
        assert not state.add(*message)
        rows = oracles.equations(schedule, arrived)
        assert state.rank == np.linalg.matrix_rank(rows, tol=1e-9)
        assert state.recovered == oracles.recovered(schedule, arrived)
        assert state.messages == len(arrived)
        assert set(state.missing) == set(range(schedule.tasks)) - set(state.recovered)


@settings(deadline=None)
@given(CASES | random_schedules(), st.integers(0, 2**32), st.integers(0, 24))
def test_the_weights_give_the_tasks_values(schedule, seed, count):
    state = schedule.recovery()
    for message in arrivals(schedule, seed)[:count]:
        state.add(*message)
    weights = state.weights()
    W = np.random.default_rng(seed).standard_normal((schedule.tasks, 3))
    rows = [schedule.equations(k, j)[part] for k, j, part in weights.messages]
    Y = np.array([word.values @ W[word.tasks] for word in rows]).reshape(-1, 3)
    given_values = Y.copy()
    value = weights.apply(Y)
    if schedule.sending == "sum":
        assert len(value) == bool(state.recovered)
        expected = np.repeat(W.sum(axis=0)[None], len(value), axis=0)
    else:
        assert tuple(weights.tasks.tolist()) == state.recovered
        expected = W[weights.tasks]
    assert np.allclose(value, expected, rtol=0, atol=1e-8)
    assert np.array_equal(Y, given_values)
    assert weights.apply(Y.astype(np.float32)).dtype == np.float32
    assert weights.amplification.shape == (len(value),)


def test_integers_are_summed_in_float64_and_nan_is_refused():
    state = make_schedule("cpgc", 4, 2).recovery()
    for message in ((0, 0), (1, 0), (1, 1)):
        state.add(*message)
    weights = state.weights()
    value = weights.apply(np.array([[100], [50], [120]], dtype=np.uint8))
    assert value.tolist() == [[100.0], [50.0], [20.0]]
    with pytest.raises(InvalidAnswers, match="NaN or infinity in message 1 of worker 1"):
        weights.apply(np.array([[1.0], [1.0], [np.nan]]))
    with pytest.raises(InvalidAnswers, match=r"shape \(3, L\).*got \(2, 1\)"):
        weights.apply(np.zeros((2, 1)))
    with pytest.raises(InvalidAnswers, match="real numbers"):
        weights.apply(np.zeros((3, 1), complex))


@pytest.mark.parametrize("tolerance", [1.0, -0.1, "0", True])
def test_a_tolerance_outside_its_range_is_refused(tolerance):
    with pytest.raises(InvalidCode, match="tolerance must be"):
        make_schedule("cpgc", 4, 2).recovery().complete(tolerance)


def test_a_tolerance_counts_whole_tasks():
    state = make_schedule("uc-mmc", 20, 1).recovery()
    for worker in range(19):
        state.add(worker)
    assert state.complete(0.05)
    assert not state.complete(0.049)


@pytest.mark.parametrize("case", SMALL, ids=lambda case: "-".join(map(str, case)))
def test_the_simulation_takes_the_decoders_decisions(case):
    schedule = make_schedule(*case)
    seconds = shifted_exponential(np.random.default_rng(3), 12, schedule.workers)
    result = completion(schedule, seconds)
    for round_number, task_seconds in enumerate(seconds):
        state = schedule.recovery()
        times = np.full(schedule.tasks + 1, np.inf)
        counts = np.zeros(schedule.tasks + 1)
        times[0] = 0.0
        for moment, worker, message in oracles.arrival_order(schedule, task_seconds):
            state.add(worker, message)
            new = np.isinf(times) & (np.arange(schedule.tasks + 1) <= len(state.recovered))
            times[new], counts[new] = moment, state.messages
        assert np.array_equal(result.seconds[round_number], times)
        assert np.array_equal(result.messages[round_number], counts)


def test_workers_that_never_answer():
    schedule = make_schedule("uc-mmc", 4, 2)
    seconds = np.array([[1.0, np.inf, 3.0, 4.0], [1.0, np.inf, np.inf, 4.0]])
    result = completion(schedule, seconds)
    assert result.time().tolist() == [4.0, np.inf]
    assert result.time(0.25).tolist() == [3.0, 4.0]
    late = completion(schedule, np.ones((1, 4)), wait=np.array([[0.0, 0.0, 5.0, np.inf]]))
    assert late.time().tolist() == [7.0]  # W4 is the second task of the worker that waits
    assert late.time(0.25).tolist() == [2.0]
    assert completion(schedule, np.zeros((0, 4))).time().shape == (0,)
    with pytest.raises(InvalidCode, match=r"\(rounds, 4\)"):
        completion(schedule, np.ones((2, 3)))
    with pytest.raises(InvalidCode, match=r"wait must be \(rounds, 4\)"):
        completion(schedule, np.ones((2, 4)), wait=np.full((2, 4), np.nan))


@pytest.mark.parametrize("name", ["rcsc", "mcc", "gradient", "uc-mmc"])
def test_a_thousand_workers_of_four_tasks(name):
    """Sound at this size too; benchmarks/recovery.py measures the time."""
    schedule = make_schedule(name, workers=1000, load=4)
    state = schedule.recovery()
    for message in arrivals(schedule, 0):
        if state.add(*message) and state.complete():
            break
    assert state.missing == ()
    weights = state.weights()
    rows = np.zeros((len(weights.messages), 1000))
    for row, (worker, message, part) in zip(rows, weights.messages, strict=True):
        word = schedule.equations(worker, message)[part]
        row[word.tasks] = word.values
    wanted = np.ones((1, 1000)) if weights.is_sum else np.eye(1000)[weights.tasks]
    assert weights.is_sum or tuple(weights.tasks.tolist()) == state.recovered
    assert np.abs(weights.matrix @ rows - wanted).max() < 1e-9
