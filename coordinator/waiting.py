"""How many answers a code waits for, and until when, for plans.

Delays are drawn alike for every worker, so the order of arrivals is uniform and independent of the
sorted times: a round is over at the M-th of its sorted times, M drawn from the thresholds of the
code in random orders. That takes a few dozen searches for the threshold instead of one a round;
`uncoded`, `replication` and `polar` have closed forms and take none.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polarcodes import ErasureCode
from polarcodes.grid import GridCode
from polarcodes.hadamard import HadamardCode
from polarcodes.mds import MdsCode
from polarcodes.schedules import ScheduleCode
from polarcodes.thresholds import arrivals_needed, decoding_times

__all__ = ["decisive_counts", "waiting_times"]

_CLOSED_FORMS = ("uncoded", "replication", "polar")
_SEARCH_WORK = 1 << 26  # of N f^2 summed over the orders that are searched
_FEWEST_ORDERS, _MOST_ORDERS = 4, 60
_MOST_GRIDS = 16  # orders: a grid asks both its codes about many lines
_NO_EXTRA = 1024  # workers, from which on no extra answer was seen
# Mean answers beyond s of one plain round at redundancy 1/8 to 1/4, rounded (benchmarks.thresholds)
_ONE_ROUND_EXTRA = ((32, 1), (128, 2), (256, 1))


def waiting_times(
    code: ErasureCode, times: NDArray[np.float64], counts: NDArray[np.intp] | None = None
) -> NDArray[np.float64]:
    """When each round of arrival `times` (rounds, N) becomes decodable, (rounds,).

    A schedule says which answers come first: their order is not uniform, and 60 rounds at most are
    searched one by one, (60,). Workers with several blocks of another code have them at random
    places, which makes the order of places uniform again.

    `counts` are thresholds of the code (`decisive_counts`), dealt out to the rounds in turn; they
    are drawn here, quickly, without them.
    """
    if code.name == "replication":
        return _every_block(times, code.data_blocks)
    if code.name in _CLOSED_FORMS:
        return decoding_times(code, times, quick=True)
    if code.name == ScheduleCode.name:
        return decoding_times(code, times[:_MOST_ORDERS])
    if counts is None:
        counts = decisive_counts(code, np.random.default_rng(code.workers), quick=True)
    needed = np.resize(counts, len(times))
    return np.asarray(np.sort(times, axis=1)[np.arange(len(times)), needed - 1])


def decisive_counts(
    code: ErasureCode, rng: np.random.Generator, orders: int = 1000, *, quick: bool = False
) -> NDArray[np.intp]:
    """A sample of M, the number of answers that decode when they come in random order.

    Size `orders` where it is cheap; where each needs a search for the first decodable set, 60 at
    most and fewer for large codes. `quick` settles for the mean of codes with one plain round, and
    for 4 searches elsewhere.
    """
    if code.name == "replication":
        ranks = 1.0 + np.argsort(rng.random((orders, code.workers)), axis=1).astype(np.float64)
        return _every_block(ranks, code.data_blocks).astype(np.intp)
    if code.name in _CLOSED_FORMS:
        return arrivals_needed(code, rng, orders, quick=True)
    ideal = isinstance(code, HadamardCode) and code.rounds.angles is not None
    if ideal or (isinstance(code, MdsCode) and code.basis == "random"):
        return np.array([code.data_blocks])
    one_round = isinstance(code, HadamardCode) and code.rounds.plain
    if one_round and (quick or code.workers >= _NO_EXTRA):
        extra = next((more for most, more in _ONE_ROUND_EXTRA if code.workers <= most), 0)
        return np.array([min(code.data_blocks + extra, code.workers)])
    work = code.workers * max(1, code.workers - code.data_blocks) ** 2
    most = _MOST_GRIDS if code.name == GridCode.name else _MOST_ORDERS
    affordable = min(max(_SEARCH_WORK // work, _FEWEST_ORDERS), most)
    return arrivals_needed(code, rng, _FEWEST_ORDERS if quick else min(orders, affordable))


def _every_block(times: NDArray[np.float64], data_blocks: int) -> NDArray[np.float64]:
    """When the first copy of the last block is there: worker i holds block i mod s."""
    rounds, workers = times.shape
    copies = -(-workers // data_blocks)
    padded = np.full((rounds, copies * data_blocks), np.inf)
    padded[:, :workers] = times
    return np.asarray(padded.reshape(rounds, copies, data_blocks).min(axis=1).max(axis=1))
