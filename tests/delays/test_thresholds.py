from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polarcodes import make_code
from polarcodes.erasures import erased_inputs
from polarcodes.thresholds import arrivals_needed, decoding_times

codes = st.builds(
    lambda name, power, share: make_code(
        name,
        workers=1 << power,
        data_blocks=1 << power if name == "uncoded" else max(1, round(share * (1 << power))),
    ),
    st.sampled_from(["polar", "hadamard", "uncoded"]),
    st.integers(1, 6),
    st.floats(0, 1),
)


@settings(deadline=None)
@given(codes, st.integers(0, 2**32))
def test_the_threshold_is_the_first_moment_at_which_the_code_says_decodable(code, seed) -> None:
    rng = np.random.default_rng(seed)
    times = rng.exponential(1.0, code.workers).round(1)  # rounded: ties happen
    times[rng.random(code.workers) < 0.05] = np.inf
    (threshold,) = decoding_times(code, times)
    arrived = np.flatnonzero(times <= threshold) if np.isfinite(threshold) else None
    if arrived is None:
        assert not code.decodable(np.flatnonzero(np.isfinite(times)))
    else:
        assert code.decodable(arrived)
        assert not code.decodable(np.flatnonzero(times < threshold))


@settings(deadline=None)
@given(codes, st.integers(0, 2**32))
def test_the_closed_forms_are_the_sequential_decoder_and_the_s_th_answer(code, seed) -> None:
    times = np.random.default_rng(seed).exponential(1.0, (3, code.workers))
    quick = decoding_times(code, times, quick=True)
    if code.name == "hadamard":
        assert np.array_equal(quick, np.sort(times)[:, code.data_blocks - 1])
        return
    assert np.all(quick >= decoding_times(code, times))
    for row, threshold in zip(times, quick, strict=True):
        if code.name == "polar":
            assert not erased_inputs(row > threshold)[code.slots].any()
            assert erased_inputs(row >= threshold)[code.slots].any()


@pytest.mark.parametrize(
    ("workers", "epsilon", "share"),
    [(64, 0.125, 0.915), (64, 0.25, 0.825), (256, 0.125, 0.919), (1024, 0.25, 0.826)],
)
def test_mean_share_of_arrivals_that_a_random_order_needs(
    workers: int, epsilon: float, share: float
) -> None:
    """The table of the mathematics notes (section 4), made from 300-1000 orders, there +-0.002.

    2,000 orders here: the standard error is below 0.001, so 0.005 is five of both together.
    """
    code = make_code("polar", workers=workers, data_blocks=round(workers * (1 - epsilon)))
    needed = arrivals_needed(code, np.random.default_rng(1), 2_000, quick=True)
    assert needed.min() >= code.data_blocks
    assert needed.max() <= workers
    assert needed.mean() / workers == pytest.approx(share, abs=0.005)


@pytest.mark.parametrize(
    ("times", "message"),
    [(np.zeros((2, 7)), r"\(rounds, 8\), got shape \(2, 7\)"), ([[np.nan] * 8], "NaN")],
)
def test_times_that_are_not_those_of_the_workers_are_refused(times, message: str) -> None:
    code = make_code("polar", workers=8, data_blocks=6)
    with pytest.raises(ValueError, match=message):
        decoding_times(code, times)
