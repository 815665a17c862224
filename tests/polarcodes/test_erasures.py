from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarcodes import NotDecodable, make_code
from polarcodes.erasures import ErasureTree, erased_inputs
from tests.polarcodes import oracles

# math.md section 4: mean share of N that must arrive, in random order, +-.002.
MEAN_SHARES = {
    64: {0.125: 0.915, 0.25: 0.825, 0.375: 0.724, 0.5: 0.607},
    256: {0.125: 0.919, 0.25: 0.830, 0.375: 0.727, 0.5: 0.611},
    1024: {0.125: 0.922, 0.25: 0.826, 0.375: 0.721, 0.5: 0.604},
}
ORDERS = {64: 4000, 256: 2000, 1024: 1000}


@pytest.mark.parametrize("workers", sorted(MEAN_SHARES))
@pytest.mark.parametrize("epsilon", [0.125, 0.25, 0.375, 0.5])
def test_golden_mean_share_of_arrivals(workers, epsilon):
    """Two-sided, 99.99 % for each entry: 3.9 standard errors, plus the table's own +-.002."""
    code = make_code("polar", workers=workers, data_blocks=round(workers * (1 - epsilon)))
    rng = np.random.default_rng(workers)
    count = ORDERS[workers]
    ranks = rng.permuted(np.tile(np.arange(workers)[:, None], count), axis=0)
    shares = oracles.arrivals_needed(ranks, code.slots) / workers
    error = 3.9 * shares.std() / count**0.5
    assert error < 0.005
    assert abs(shares.mean() - MEAN_SHARES[workers][epsilon]) <= 0.0025 + error


@pytest.mark.parametrize("workers,blocks", [(64, 48), (256, 240), (1024, 960)])
def test_the_sequential_decoder_is_ready_at_the_predicted_arrival(workers, blocks):
    code = make_code("polar", workers=workers, data_blocks=blocks)
    rng = np.random.default_rng(0)
    for _ in range(10):
        order = oracles.sequential_order(code, rng)
        ranks = np.full(workers, workers)
        ranks[order] = np.arange(len(order))
        assert oracles.arrivals_needed(ranks[:, None], code.slots) == len(order)


@st.composite
def patterns(draw, most=6):
    order = 1 << draw(st.integers(1, most))
    flags = st.lists(st.booleans(), min_size=order, max_size=order)
    return np.array(draw(flags)), np.array(draw(flags))


@given(patterns())
def test_the_recursion_equals_its_definition_for_any_slots(pattern):
    erased, is_data = pattern
    fast = not (erased_inputs(erased) & is_data).any()
    assert fast == oracles.decodable(erased.tolist(), is_data.tolist())


@given(patterns())
def test_every_stage_keeps_the_number_of_erasures(pattern):
    erased, _ = pattern
    assert erased_inputs(erased).sum() == erased.sum()


@given(patterns(), st.randoms(use_true_random=False))
def test_incremental_arrivals_equal_the_batch(pattern, random):
    erased, _ = pattern
    arrivals = np.flatnonzero(~erased).tolist()
    random.shuffle(arrivals)
    tree = ErasureTree(erased.size)
    settled = [tree.settle(worker) for worker in arrivals]
    assert sorted(settled) == np.flatnonzero(~erased_inputs(erased)).tolist()


def test_several_patterns_at_once():
    rng = np.random.default_rng(5)
    erased = rng.random((32, 7)) < 0.3
    together = erased_inputs(erased)
    for pattern in range(7):
        assert np.array_equal(together[:, pattern], erased_inputs(erased[:, pattern]))


def test_not_decodable_names_what_is_missing():
    code = make_code("polar", workers=64, data_blocks=48)
    with pytest.raises(NotDecodable) as caught:
        code.plan(range(40))
    error = caught.value
    assert error.missing_count >= 8
    assert len(error.helpful) >= error.missing_count
    assert code.decodable([*range(40), *error.helpful])
    assert str(error.helpful[0]) in str(error)
