"""From arrival times to the moment of decoding, for many rounds at once.

"Times instead of erasures" (arXiv 2309.00682, polarization of run times): a 2 x 2 block of the
transform gives its upper input at the later and its lower input at the earlier of its two outputs'
times. So the time at which every slot becomes known is the polar transform of the arrival times
with (max, min) in place of (a + b, a - b), and a code is decodable at the latest time among its
data slots, at a cost of N log2 N comparisons a round. That is when the sequential decoder is ready;
the syndrome decoder may be ready some answers earlier, which only the rank tells.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarcodes.code import ErasureCode
from polarcodes.hadamard import HadamardCode
from polarcodes.kernels.code import KernelPolarCode
from polarcodes.kernels.recursion import input_times
from polarcodes.polar import PolarCode


def decoding_times(
    code: ErasureCode, times: ArrayLike, *, quick: bool = False
) -> NDArray[np.float64]:
    """When each round becomes decodable.

    Parameters: `times` (rounds, N), arrival time of every worker, in any unit; inf for an answer
    that never comes. Returns (rounds,) float64: the smallest t such that the workers with time <= t
    decode; inf when no set does. Exactly `code.decodable` asked at every moment, by a search up
    from the s-th arrival: one `code.decodable` per round where s answers suffice, log2 N at most
    elsewhere. With `quick` in closed form where there is one, for planning: `polar` by its
    sequential decoder (an upper bound, 4 % late at N = 256, s = 192), `hadamard` of two rounds with
    rotated stages at the s-th answer (too early for 3 in 19,000 codes and orders; see
    benchmarks/thresholds.py). Raises ValueError when `times` does not have N columns or holds NaN.
    """
    table = np.array(times, dtype=np.float64, ndmin=2)
    if table.ndim != 2 or table.shape[1] != code.workers:
        raise ValueError(f"times must be (rounds, {code.workers}), got shape {table.shape}")
    if np.isnan(table).any():
        raise ValueError("times must not hold NaN; use inf for an answer that never comes")
    if code.name == "uncoded":
        return np.asarray(table.max(axis=1))
    if quick and isinstance(code, HadamardCode) and code.rounds.angles is not None:
        return np.asarray(
            np.partition(table, code.data_blocks - 1, axis=1)[:, code.data_blocks - 1]
        )
    if quick and isinstance(code, PolarCode):
        return np.asarray(_slot_times(table)[:, code.slots].max(axis=1))
    if quick and isinstance(code, KernelPolarCode):
        whole = np.full((code.transform.order, len(table)), np.inf)
        whole[code.positions] = table.T
        return np.asarray(input_times(code.transform.sizes, whole)[code.inputs].max(axis=0))
    return np.array([_searched(code, row) for row in table])


def arrivals_needed(
    code: ErasureCode, rng: np.random.Generator, orders: int, *, quick: bool = False
) -> NDArray[np.intp]:
    """Number of arrivals that decode, (orders,) intp, when the workers answer in a uniform random
    order; `quick` as in :func:`decoding_times`."""
    ranks = np.argsort(rng.random((orders, code.workers)), axis=1) + 1.0
    return decoding_times(code, ranks, quick=quick).astype(np.intp)


def _slot_times(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """The (max, min) transform, in place; first half of the indices outermost, as in the Sylvester
    matrix."""
    rounds, workers = table.shape
    half = workers // 2
    while half:
        pairs = table.reshape(rounds, -1, 2, half)
        later = np.maximum(pairs[:, :, 0], pairs[:, :, 1])
        np.minimum(pairs[:, :, 0], pairs[:, :, 1], out=pairs[:, :, 1])
        pairs[:, :, 0] = later
        half //= 2
    return table


def _searched(code: ErasureCode, times: NDArray[np.float64]) -> float:
    order = np.argsort(times, kind="stable")
    order = order[np.isfinite(times[order])]
    low, high, step = code.data_blocks - 1, code.data_blocks, 1  # `low` arrivals never decode
    while high <= order.size and not code.decodable(order[:high]):
        low, high, step = high, max(min(high + step, order.size), high + 1), 2 * step
    if high > order.size:
        return float("inf")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if code.decodable(order[:middle]) else (middle, high)
    return float(times[order[high - 1]])
