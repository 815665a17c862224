"""Both tables of the paper's example (arXiv 1811.09271, K = M = 4, r = 2), by enumeration.

A score vector says how many tasks each worker has done. Counted are the vectors with N2 twos, N1
ones and N0 zeros that give the full gradient, and those that give at least three of the four parts.
The last row is N2, N1, N0 = 0, 3, 1; the paper prints another N0 there.
"""

from __future__ import annotations

from itertools import product

import pytest

from polarcodes.schedules import Schedule, make_schedule

# (N2, N1, N0): full gradient and three of four, each for MCC, UC-MMC and CPGC
PUBLISHED = {
    (4, 0, 0): ((1, 1, 1), (1, 1, 1)),
    (3, 1, 0): ((4, 4, 4), (4, 4, 4)),
    (3, 0, 1): ((4, 4, 4), (4, 4, 4)),
    (2, 2, 0): ((6, 6, 6), (6, 6, 6)),
    (2, 1, 1): ((12, 8, 12), (12, 12, 12)),
    (2, 0, 2): ((6, 2, 6), (6, 6, 6)),
    (1, 3, 0): ((0, 4, 4), (0, 4, 4)),
    (1, 2, 1): ((0, 4, 8), (0, 12, 12)),
    (1, 1, 2): ((0, 0, 0), (0, 8, 8)),
    (0, 4, 0): ((0, 1, 1), (0, 1, 1)),
    (0, 3, 1): ((0, 0, 0), (0, 4, 4)),
}


def counts(schedule, tolerance):
    found = dict.fromkeys(PUBLISHED, 0)
    for scores in product(range(3), repeat=4):
        state = schedule.recovery()
        for worker, done in enumerate(scores):
            sent = done if schedule.sending == "each" else done // schedule.load
            for message in range(sent):
                state.add(worker, message)
        kind = (scores.count(2), scores.count(1), scores.count(0))
        if state.complete(tolerance):
            found[kind] = found.get(kind, 0) + 1
    return found


@pytest.mark.parametrize(("table", "tolerance"), [(0, 0.0), (1, 0.25)])
@pytest.mark.parametrize(("column", "name"), [(0, "mcc"), (1, "uc-mmc"), (2, "cpgc")])
def test_the_table_is_reproduced_exactly(column, name, table, tolerance):
    expected = {kind: columns[table][column] for kind, columns in PUBLISHED.items()}
    assert counts(make_schedule(name, workers=4, load=2), tolerance) == expected


def test_the_recipe_of_twenty_workers_is_another_schedule_at_four():
    """It scores 11, 4 and 7 where the example has 12, 6 and 8: why K = 4 has a row of its own."""
    recipe = [[[0], [1], [2], [3]], [[2, 3], [0, 1], [1, 3], [0, 2]]]
    found = counts(Schedule.from_table("recipe", recipe, tasks=4), 0.0)
    assert (found[2, 1, 1], found[2, 0, 2], found[1, 2, 1]) == (11, 4, 7)
