"""Schedules in which worker k's codewords are worker 1's, shifted by k: UC-MMC and RCSC.

Every worker and every task plays the same part in them, so with workers alike no task is missing
more often than another, and a gradient of the recovered ones is not skewed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from polarcodes.checks import integer
from polarcodes.errors import InvalidCode
from polarcodes.schedules import checks

Base = Sequence[tuple[int, float]]
"""A codeword of worker 1: pairs (shift, coefficient)."""


def circulant_coefficients(workers: int, bases: Sequence[Base]) -> NDArray[np.float64]:
    """Return the (r, K, K) table: worker k's t-th codeword is the sum of c W_{k + shift mod K}."""
    K = workers
    table = np.zeros((len(bases), K, K))
    k = np.arange(K)
    for t, base in enumerate(bases):
        for shift, coefficient in base:
            table[t, k, (k + shift) % K] = coefficient
    return table


def uc_mmc_coefficients(workers: int, load: int) -> NDArray[np.float64]:
    """Uncoded computation with multi-message communication: worker k does W_k, W_{k+1}, ..."""
    K, r = checks.workers_and_load(workers, load)
    return circulant_coefficients(K, [[(shift, 1.0)] for shift in range(r)])


def rcsc_coefficients(
    workers: int, load: int, *, seed: int = 0, degrees: Sequence[int] | None = None
) -> NDArray[np.float64]:
    """Random circularly shifted code: worker k's t-th codeword adds its next degrees[t] tasks.

    Of "Distributed Gradient Descent with Coding and Partial Recovery" (the journal version of arXiv
    1811.09271): sum(degrees) distinct circular shifts of W_1..W_K are drawn, so no worker meets a
    task twice. ``degrees`` starts with 1 (the first result is useful by itself); the default is
    1, 2, .., r. Raises :class:`~polarcodes.errors.InvalidCode`.
    """
    K, r = checks.workers_and_load(workers, load)
    counts = _degrees(K, r, range(1, r + 1) if degrees is None else degrees)
    shifts = np.random.default_rng(integer("seed", seed, 0, None)).permutation(K)
    ends = list(accumulate(counts))
    return circulant_coefficients(
        K,
        [
            [(int(d), 1.0) for d in shifts[end - n : end]]
            for n, end in zip(counts, ends, strict=True)
        ],
    )


def _degrees(K: int, r: int, degrees: Sequence[int]) -> list[int]:
    hint = f"; give degrees of {r} numbers, the first 1, that add up to at most {K}"
    if len(degrees) != r:
        raise InvalidCode(
            f"degrees must have one number for each of the {r} tasks of a worker, got {degrees!r}"
        )
    counts = [integer("degrees: each", degree, 1, K, hint=hint) for degree in degrees]
    if counts[0] != 1:
        raise InvalidCode(f"degrees must start with 1, got {counts}{hint}")
    if sum(counts) > K:
        raise InvalidCode(
            f"degrees must add up to at most workers={K}, since their shifts are distinct, got "
            f"{counts}, together {sum(counts)}{hint}"
        )
    return counts
