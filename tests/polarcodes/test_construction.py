from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from polarcodes.construction import data_slots, erasure_log_odds


def exact_probabilities(order: int, epsilon: Fraction) -> list[Fraction]:
    """The erasure recursion in rational numbers: first half z-, second half z+, recurse."""
    if order == 1:
        return [epsilon]
    first = 1 - (1 - epsilon) ** 2
    return exact_probabilities(order // 2, first) + exact_probabilities(order // 2, epsilon**2)


def test_golden_probabilities_of_four_slots():
    odds = np.exp(erasure_log_odds(4, 0.5))
    np.testing.assert_allclose(odds / (1 + odds), [0.9375, 0.5625, 0.4375, 0.0625], rtol=1e-12)
    assert data_slots(4, 2, 0.5).tolist() == [2, 3]


@pytest.mark.parametrize("order", [2, 8, 32, 128, 512])
@pytest.mark.parametrize("epsilon", [Fraction(1, 16), Fraction(1, 4), Fraction(1, 2)])
def test_log_odds_equal_rational_arithmetic(order, epsilon):
    # Denominators have up to 2^order digits' worth of bits: 512 slots are still exact and fast.
    exact = exact_probabilities(order, epsilon)
    odds = erasure_log_odds(order, float(epsilon))
    ranking = sorted(range(order), key=lambda slot: (odds[slot], -slot))
    for better, worse in pairwise(ranking):
        # Some slots differ by less than 1e-16 of their probability: either order will do.
        assert exact[better] <= exact[worse] * (1 + Fraction(1, 10**8))


def test_no_ties_where_probabilities_would_round_to_zero_and_one():
    odds = erasure_log_odds(4096, 0.125)
    assert np.isfinite(odds).all()
    assert np.unique(odds).size > 4000


@pytest.mark.parametrize("blocks", [1, 7, 96, 128])
def test_slots_are_ascending_distinct_and_nested(blocks):
    slots = data_slots(128, blocks, 0.25)
    assert slots.size == blocks
    assert np.all(np.diff(slots) > 0)
    assert set(data_slots(128, max(1, blocks - 1), 0.25)) <= set(slots)


def test_a_slot_that_is_never_worse_is_taken_first():
    # Slot i is at least as good as j when the ones of j are among the ones of i.
    slots = set(data_slots(64, 40, 0.375).tolist())
    for better in range(64):
        for worse in range(64):
            if worse & better == worse and worse in slots:
                assert better in slots
