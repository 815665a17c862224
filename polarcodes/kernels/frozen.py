"""Which inputs carry data: from an erasure probability, one for each worker, or from their times.

The s inputs least likely to be erased (:func:`~polarcodes.kernels.recursion.input_log_odds`) carry
data. Times come in through F_i(t), the share of worker i's times up to t: at time t the answers are
erased with probabilities 1 - F_i(t), so that the recursion on erasures is the one on distribution
functions, F- = F^2 and F+ = 2F - F^2 for the 2 x 2 kernel (arXiv 2309.00682). Whether inputs are
reached by t are increasing functions of independent arrivals, hence positively correlated, and
prod_k (1 - z_k(t)) over the data is a lower bound of the probability to decode by t (derived here).
With equal workers z depends on t through F(t) alone: the best inputs and the share of answers
needed are the same for every continuous distribution, only the time differs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.checks import real
from polarcodes.errors import InvalidCode
from polarcodes.kernels.recursion import input_logarithms

Ids = NDArray[np.intp]
Float = NDArray[np.float64]


def data_inputs(
    sizes: Sequence[int], positions: Ids, order: int, erasure: Float, data_blocks: int
) -> Ids:
    """Return the s inputs that carry data, ascending, for erasure probabilities of the workers.

    Positions of no worker are erased for certain. N' - N inputs are then never reached; they come
    last, so that any s <= N decodes from all N answers. Ties as in
    :func:`polarcodes.construction.data_slots`.
    """
    log_z, log_q = _logarithms(sizes, positions, order, erasure)
    best_first = np.lexsort((-np.arange(order), (log_z - log_q).round(9)))
    inputs = np.sort(best_first[:data_blocks]).astype(np.intp)
    inputs.flags.writeable = False
    return inputs


def checked_erasure(erasure: Any, workers: int) -> Float:
    """Return one erasure probability for each worker, in [0, 1) and not all 0."""
    try:
        given = np.array(erasure, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.shape != (workers,) or not ((given >= 0) & (given < 1)).all() or not given.any():
        raise InvalidCode(
            f"erasure must be {workers} probabilities in [0, 1), one for each worker and not all "
            "0: a worker that never answers is none, take fewer workers"
        )
    return given


def checked_times(times: Any, workers: int) -> Float:
    """Return a sample of times as (n, 1), of equal workers, or (n, N): inf for no answer."""
    try:
        given = np.array(times, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    if given.ndim == 1:
        given = given[:, None]
    if (
        given.ndim != 2
        or given.shape[1] not in (1, workers)
        or len(given) < 2
        or np.isnan(given).any()
        or not np.isfinite(given).any()
    ):
        raise InvalidCode(
            f"times must be a sample (n,) of the time of any worker, or (n, {workers}) with a "
            f"column for each, n >= 2; inf means no answer, NaN nothing; got shape {given.shape}"
        )
    return given


def erasure_at(times: Float, moment: float, workers: int) -> Float:
    """Return 1 - F_i(t), the share of times above t, for each worker.

    (k + 1/2) / (n + 1) for k of n, so that a finite sample never says never or always.
    """
    share = (np.sum(times > moment, axis=0) + 0.5) / (len(times) + 1)
    return np.broadcast_to(share, workers).astype(np.float64)


def decoding_moment(
    sizes: Sequence[int],
    positions: Ids,
    order: int,
    times: Float,
    *,
    data_blocks: int,
    inputs: Ids | None = None,
    share: float = 0.5,
) -> float:
    """Return the earliest sampled time t with prod_k (1 - z_k(t)) >= ``share``; inf if none.

    Over the given inputs, or at each t the s best ones. An upper bound of that quantile of the
    decoding time. O(N' log N') for each of log2 n steps.
    """
    if not 0 < real("share", share) < 1:
        raise InvalidCode(f"share must lie strictly between 0 and 1, got {share}")
    moments = np.unique(times[np.isfinite(times)])

    def reached(index: int) -> bool:
        erasure = erasure_at(times, moments[index], positions.size)
        _, log_q = _logarithms(sizes, positions, order, erasure)
        chosen = np.sort(log_q)[-data_blocks:] if inputs is None else log_q[inputs]
        return float(chosen.sum()) >= math.log(share)

    low, high = -1, moments.size
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return float(moments[high]) if high < moments.size else float("inf")


def _logarithms(
    sizes: Sequence[int], positions: Ids, order: int, erasure: Float
) -> tuple[Float, Float]:
    whole = np.ones(order)
    whole[positions] = erasure
    return input_logarithms(sizes, whole)
