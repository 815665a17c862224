"""The search: repeatable, honest about what it did not see, and better than what it is shipped
against."""

from __future__ import annotations

import numpy as np
import pytest

from polarcodes import InvalidCode
from polarcodes.schedules import (
    checks,
    completion,
    make_schedule,
    search_schedule,
    shifted_exponential,
)
from polarcodes.schedules.searched import FOUND

SHIPPED = [(K, r, tolerance) for (K, r), found in FOUND.items() for tolerance in found]


def searched(**options):
    small = {"candidates": 40, "rounds": 80, "held_out": 300, "seed": 3} | options
    return search_schedule(8, 3, shifted_exponential, **small)


def test_the_same_seed_finds_the_same_schedule():
    first, again = searched(), searched()
    assert first.schedule == again.schedule
    assert (first.seconds, first.rivals, first.kept) == (again.seconds, again.rivals, again.kept)
    assert searched(seed=4).schedule != first.schedule


def test_what_it_finds_is_uncoded_first_circulant_and_of_signs():
    found = searched().schedule
    assert np.array_equal(found.coefficients[0], np.eye(8))
    assert set(np.unique(found.coefficients)) <= {-1.0, 0.0, 1.0}
    for k in range(8):
        shifted = np.roll(found.coefficients[:, 0], k, axis=1)
        assert np.array_equal(shifted, found.coefficients[:, k])


def test_degrees_can_be_limited():
    table = searched(max_degree=2).schedule.coefficients
    assert np.count_nonzero(table, axis=2).max() <= 2


def test_the_result_is_judged_on_rounds_that_the_search_did_not_see():
    drawn = []

    def draw(rng, rounds, workers):
        drawn.append(shifted_exponential(rng, rounds, workers))
        return drawn[-1]

    result = search_schedule(8, 3, draw, candidates=20, rounds=50, held_out=200, seed=1)
    training, held_out = drawn
    assert (len(training), len(held_out)) == (50, 200)
    assert not np.isin(held_out, training).any()
    assert result.seconds == completion(result.schedule, held_out).time().mean()
    uncoded = make_schedule("uc-mmc", 8, 3)
    assert result.rivals["uc-mmc"] == completion(uncoded, held_out).time().mean()
    assert set(result.rivals) == {"uc-mmc", "mcc", "cpgc", "rcsc"}


def test_nothing_is_kept_where_nothing_can_be_gained():
    """With equal workers the first row decides, and every uncoded first row is as good."""

    def equal(rng, rounds, workers):
        return np.ones((rounds, workers))

    result = search_schedule(8, 2, equal, candidates=5, rounds=10, held_out=20)
    assert result.seconds == result.rivals["uc-mmc"] == 1.0
    assert not result.kept


def test_a_rival_that_cannot_serve_is_left_out():
    result = search_schedule(5, 4, shifted_exponential, candidates=5, rounds=20, held_out=20)
    assert set(result.rivals) == {"uc-mmc", "mcc"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tolerance": 1.0}, r"\[0, 1\)"),
        ({"candidates": 1}, "candidates"),
        ({"max_degree": 9}, "max_degree"),
        ({"seed": -1}, "seed"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(InvalidCode, match=message):
        searched(**options)


def test_one_row_leaves_nothing_to_search():
    with pytest.raises(InvalidCode, match="load must be at least 2"):
        search_schedule(8, 1, shifted_exponential)


@pytest.mark.parametrize(("workers", "load", "tolerance"), SHIPPED)
def test_every_shipped_schedule_beats_the_others_on_new_delays(workers, load, tolerance):
    """New: another seed than the search's training and its judgement. Gains of at least 3 standard
    errors of the paired difference; the rounds are as many as make the least of them 4 or more."""
    needed = checks.needed(workers, tolerance)
    seconds = shifted_exponential(
        np.random.default_rng(77), 1500 if tolerance >= 0.2 else 300, workers
    )

    def times(name, **options):
        schedule = make_schedule(name, workers, load, **options)
        return completion(schedule, seconds, enough=needed).seconds[:, needed]

    found = times("searched", tolerance=tolerance)
    for name in ("rcsc", "mcc") if load > 3 else ("cpgc", "rcsc", "mcc"):
        gain = times(name) - found
        assert gain.mean() > 3 * gain.std(ddof=1) / np.sqrt(len(gain)), name


@pytest.mark.parametrize("tolerance", [0.0, 0.05])
def test_the_aim_ten_percent_below_cpgc(tolerance):
    seconds = shifted_exponential(np.random.default_rng(5), 600, 20)
    found = make_schedule("searched", 20, 3, tolerance=tolerance)
    cpgc = completion(make_schedule("cpgc", 20, 3), seconds).time(tolerance)
    assert (completion(found, seconds).time(tolerance) - 0.9 * cpgc).mean() < 0


def test_the_nearest_searched_tolerance_is_taken():
    assert make_schedule("searched", 20, 3, tolerance=0.06) == make_schedule(
        "searched", 20, 3, tolerance=0.05
    )
    assert make_schedule("searched", 20, 3) != make_schedule("searched", 20, 3, tolerance=0.3)
