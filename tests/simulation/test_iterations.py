"""Training in virtual time: seconds and dollars against hand counts, real estimates."""

from __future__ import annotations

import numpy as np
import pytest

from polarcodes.delays import from_table, make_delays
from polarlambda.simulation.iterations import Clock, SimulatedMatrix
from polarlambda.simulation.iterations_schemes import (
    SCHEDULES,
    Timing,
    best_data_blocks,
    coded,
    relaunched,
    scheduled,
    uncoded,
)

TIMING = Timing(task=2.0, announce=0.3, message=0.1, collect=0.5, look=1.0)
RNG = np.random.default_rng(0)


def matrix(scheme, delays=None, **options):
    A = np.random.default_rng(5).standard_normal((40, 8))
    delays = delays or make_delays("none")
    return SimulatedMatrix(A, scheme, delays, timing=TIMING, **options)


def test_seconds_are_announcement_load_messages_and_collecting():
    none = np.zeros((1, 8))
    plain, half = uncoded(8), coded("c", 8, data_blocks=4)
    assert plain.decisive(none, TIMING, RNG)[0] == pytest.approx(0.3 + 2.0 + 0.1)
    assert half.decisive(none, TIMING, RNG)[0] == pytest.approx(0.3 + 2 * 2.0 + 0.1)
    assert (plain.work, half.work) == (1.0, 2.0)
    several = coded("s", 8, data_blocks=4, messages=4)  # 16 of 32 blocks: two from each worker
    assert several.decisive(none, TIMING, RNG)[0] == pytest.approx(0.3 + 2 * (1.0 + 0.1))
    clock = Clock()
    result = matrix(plain, clock=clock).multiply(np.ones(8))
    assert result.seconds == clock.seconds == pytest.approx(2.4 + 0.5)
    assert result.exact and result.arrivals == 8


def test_one_straggler_is_waited_for_without_a_code_only():
    late = from_table([[10.0, 0, 0, 0, 0, 0, 0, 0]])
    excess = late.sample(RNG, 1, 8)
    assert uncoded(8).decisive(excess, TIMING, RNG)[0] == pytest.approx(12.4)
    assert coded("c", 8, data_blocks=6).decisive(excess, TIMING, RNG)[0] < 4
    again = relaunched(8).decisive(excess, TIMING, RNG)[0]
    assert 2.4 + 2.4 <= again <= 12.4


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_charge_the_messages_that_they_send(name):
    scheme = scheduled(name, 20, 3)
    done = scheme.decisive(np.zeros((2, 20)), TIMING, RNG)
    tasks = {"mcc": 3, "gradient": 3}.get(name, 1)
    assert done == pytest.approx(0.3 + 2.0 * tasks + 0.1)
    assert scheme.work == 3.0


@pytest.mark.parametrize("name", ["uc-mmc", "mcc", "cpgc", "rcsc", "searched"])
def test_what_is_complete_is_what_the_schedules_decoder_says(name):
    """The product's end and the vectorised replay of schedules agree, at every tolerance."""
    scheme = scheduled(name, 20, 3)
    delays = make_delays("exponential", mean=2.0)
    for missing in (0.0, 0.1, 0.3):
        product = matrix(scheme, delays, seed=3)
        excess = delays.sample(np.random.default_rng(3), 64, 20)
        expected = scheme.completion(excess, TIMING).time(missing)[::-1]
        until = "exact" if missing == 0 else f"tasks={1 - missing}"
        found = [product.multiply(np.ones(8), until=until).seconds - 0.5 for _ in range(20)]
        assert found == pytest.approx(expected[:20].tolist())


@pytest.mark.parametrize("name", ["no coding", "cpgc"])
def test_missing_rows_are_zero_and_named_and_the_others_exact(name):
    scheme = uncoded(20) if name == "no coding" else scheduled("cpgc", 20, 3)
    product = matrix(scheme, make_delays("exponential", mean=2.0))
    x = np.arange(8.0)
    seen = 0
    for _ in range(20):
        result = product.multiply(x, until="tasks=0.85")
        known = np.ones(40, bool)
        for first, last in result.missing_rows:
            known[first:last] = False
        seen += int((~known).any())
        assert known.mean() >= 0.85 and result.exact == known.all()
        np.testing.assert_array_equal(result.value[known], (product.A @ x)[known])
        assert not result.value[~known].any()
    assert seen


def test_an_estimate_is_of_the_predicted_error_and_takes_less_time():
    scheme = coded("c", 32, data_blocks=20)
    product = matrix(scheme, make_delays("exponential", mean=2.0))
    x, ratios = np.arange(8.0), []
    exact = product.multiply(x)
    for _ in range(30):
        result = product.multiply(x, until="error=0.5")
        assert not result.exact and result.error <= 0.55 and result.arrivals < exact.arrivals
        error = np.linalg.norm(result.value - exact.value) / np.linalg.norm(exact.value)
        ratios.append(error / result.error)
    assert 0.8 < np.mean(ratios) < 1.2


def test_with_a_reference_the_same_error_takes_fewer_answers():
    product = matrix(coded("c", 32, data_blocks=20), make_delays("exponential", mean=2.0))
    x = np.arange(8.0)
    first = product.multiply(x)
    near = product.multiply(x + 0.01, until="error=0.01", reference=first)
    assert near.arrivals == 1 and not near.exact
    error = np.linalg.norm(near.value - product.A @ (x + 0.01)) / np.linalg.norm(near.value)
    assert error < 0.02
    with pytest.raises(ValueError, match="none of the last"):
        product.multiply(x, until="error=0.01", reference=near.run)


def test_dollars_grow_with_work_and_stop_with_the_marker():
    plain = matrix(uncoded(8)).multiply(np.ones(8)).cost
    double = matrix(coded("c", 8, data_blocks=4)).multiply(np.ones(8)).cost
    assert plain is not None and double is not None and 1.3 < double / plain < 2.0
    late = from_table([[100.0] + [0.0] * 7])
    stopped = matrix(coded("c", 8, data_blocks=6), late).multiply(np.ones(8)).cost
    waited = matrix(uncoded(8), late).multiply(np.ones(8)).cost
    assert stopped is not None and waited is not None and stopped < waited / 3


def test_the_best_number_of_data_blocks_pays_for_the_delays():
    none = best_data_blocks(coded("c", 20, data_blocks=16), make_delays("none"), TIMING)
    heavy = best_data_blocks(
        coded("c", 20, data_blocks=16), make_delays("exponential", mean=20.0), TIMING
    )
    assert none.code.data_blocks >= 19 > heavy.code.data_blocks
    with pytest.raises(ValueError, match="no data blocks"):
        best_data_blocks(relaunched(20), make_delays("none"), TIMING)


@pytest.mark.parametrize(
    ("scheme", "until", "words"),
    [
        (coded("c", 8, data_blocks=6), "seconds=3", "not simulated"),
        (coded("c", 8, data_blocks=6), "tasks=0.5", "all of a product, or nothing"),
        (relaunched(8), "error=0.5", "has no estimate"),
    ],
)
def test_what_a_scheme_cannot_do_is_refused(scheme, until, words):
    with pytest.raises(ValueError, match=words):
        matrix(scheme).multiply(np.ones(8), until=until)
