"""Data inputs for an erasure probability, one for each worker, or a sample of their times."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from polarcodes import InvalidCode, code_from_manifest, make_code
from polarcodes.kernels.frozen import decoding_moment
from polarcodes.kernels.recursion import reached_inputs
from polarcodes.kernels.timing import predicted_time
from polarcodes.polar import PolarCode
from polarcodes.thresholds import decoding_times


def decoding_probability(sizes, inputs, erasure):
    """Exactly, over all patterns of arrivals."""
    total = 0.0
    for pattern in product((False, True), repeat=len(erasure)):
        known = np.array(pattern)
        if reached_inputs(sizes, known)[inputs].all():
            total += float(np.prod(np.where(known, 1 - erasure, erasure)))
    return total


@pytest.mark.parametrize("workers", [12, 16])
def test_equal_probabilities_choose_what_epsilon_does(workers):
    plain = make_code("polar", workers=workers, data_blocks=9, epsilon=0.375)
    listed = make_code("polar", workers=workers, data_blocks=9, erasure=[0.375] * workers)
    assert listed == plain
    assert type(listed) is type(plain)


@pytest.mark.parametrize("workers,blocks", [(8, 5), (12, 8), (10, 7)])
def test_inputs_chosen_for_unequal_workers_decode_more_often(workers, blocks):
    """By enumeration; never worse by more than 1 %, the choice being greedy, and better by far."""
    rng = np.random.default_rng(workers)
    gains = []
    for _ in range(8):
        erasure = np.where(rng.random(workers) < 0.4, 0.7, 0.02)
        if not np.ptp(erasure):
            continue
        chosen = make_code("polar", workers=workers, data_blocks=blocks, erasure=erasure)
        usual = make_code("polar", workers=workers, data_blocks=blocks)
        probabilities = []
        for code in (chosen, usual):
            if isinstance(code, PolarCode):
                sizes, inputs, whole = (2, 2, 2), code.slots, erasure
            else:
                sizes, inputs = code.transform.sizes, code.inputs
                whole = np.ones(code.transform.order)
                whole[code.positions] = erasure
            probabilities.append(decoding_probability(sizes, inputs, whole))
        gains.append(probabilities[0] - probabilities[1])
    assert min(gains) > -0.01
    assert max(gains) > 0.02


def test_codes_for_unequal_workers_survive_their_manifest():
    erasure = np.linspace(0.0, 0.9, 16)
    code = make_code("polar", workers=16, data_blocks=9, erasure=erasure)
    assert isinstance(code, PolarCode)
    assert code.epsilon == pytest.approx(0.45)
    assert code != make_code("polar", workers=16, data_blocks=9, epsilon=0.45)
    assert code_from_manifest(code.to_manifest()) == code


@pytest.mark.parametrize("workers,blocks", [(16, 11), (12, 8)])
def test_equal_workers_get_the_same_code_whatever_their_distribution(workers, blocks):
    """Slots depend on t through F(t) alone: any increasing function of the times is the same."""
    quantiles = (np.arange(500) + 0.5) / 500
    codes = [
        make_code("polar", workers=workers, data_blocks=blocks, times=times)
        for times in (quantiles, -np.log1p(-quantiles), quantiles**5 + 3)
    ]
    assert codes[0] == codes[1] == codes[2]


@pytest.mark.parametrize("workers,blocks", [(64, 48), (256, 192), (48, 36), (50, 37)])
def test_the_predicted_time_is_just_above_the_median(workers, blocks):
    """Of 1,000 runs: at least half, less four standard errors, decode by the predicted time, and
    less than half by the time at which 2 % fewer answers are expected."""
    code = make_code("polar", workers=workers, data_blocks=blocks, seed=1)
    quantiles = -np.log1p(-(np.arange(4000) + 0.5) / 4000)
    times = np.random.default_rng(workers).exponential(size=(1000, workers))
    taken = decoding_times(code, times, quick=True)
    predicted = predicted_time(code, quantiles)
    earlier = -np.log1p(-(1 - np.exp(-predicted) - 0.02))
    error = 4 * 0.5 / np.sqrt(1000)
    assert np.mean(taken <= predicted) >= 0.5 - error
    assert np.mean(taken <= earlier) <= 0.5 + error
    assert predicted_time(code, quantiles, share=0.9) > predicted
    assert predicted > -np.log1p(-blocks / workers)  # F^-1(s/N), the limit of any code


def test_times_of_each_worker_count():
    rng = np.random.default_rng(1)
    means = np.where(np.arange(64) % 4 == 1, 5.0, 1.0)
    sample = rng.exponential(size=(400, 64)) * means
    code = make_code("polar", workers=64, data_blocks=48, times=sample)
    usual = make_code("polar", workers=64, data_blocks=48)
    assert code.slots.tolist() != usual.slots.tolist()
    assert predicted_time(code, sample) <= predicted_time(usual, sample)
    assert predicted_time(code, sample) > predicted_time(usual, sample / means)


def test_answers_that_never_come_have_no_time():
    code = make_code("polar", workers=16, data_blocks=12)
    often = np.array([1.0, 2.0, np.inf, np.inf])
    assert predicted_time(code, often) == np.inf
    made = make_code("polar", workers=16, data_blocks=12, times=often)
    assert made.epsilon == pytest.approx(0.5)  # (2 + 1/2) / (4 + 1) at the last moment there is
    seldom = np.append(np.linspace(1, 2, 400), np.inf)
    assert 1 < predicted_time(code, seldom) < 2


def test_the_moment_is_the_first_that_reaches_the_share():
    times = np.arange(1.0, 101.0)[:, None]
    at = decoding_moment((2,), np.arange(2), 2, times, data_blocks=1, share=0.75)
    # The better of two inputs needs either answer: 1 - (1 - F)^2 >= 3/4 from F = 1/2 on.
    assert at == 50.0


@pytest.mark.parametrize(
    "options",
    [
        {"erasure": [0.5] * 11},
        {"erasure": [0.5] * 11 + [1.0]},
        {"erasure": [0.5] * 11 + [-0.1]},
        {"erasure": [0.5] * 11 + [np.nan]},
        {"erasure": [0.0] * 12},
        {"erasure": 0.5},
        {"erasure": "often"},
        {"times": [1.0]},
        {"times": [np.inf, np.inf]},
        {"times": [1.0, np.nan]},
        {"times": np.ones((5, 11))},
        {"times": np.ones((1, 12))},
        {"times": "soon"},
        {"times": [1.0, 2.0], "erasure": [0.5] * 12},
    ],
)
def test_impossible_probabilities_and_times_are_refused(options):
    with pytest.raises(InvalidCode, match=next(iter(options))):
        make_code("polar", workers=12, data_blocks=8, **options)


@pytest.mark.parametrize("share", [0, 1, "a"])
def test_impossible_shares_are_refused(share):
    with pytest.raises(InvalidCode, match="share"):
        predicted_time(make_code("polar", workers=4, data_blocks=2), [1.0, 2.0], share=share)
