"""Gradient coding: each worker sends one combination of r partial gradients, for their sum.

Of Tandon, Lei, Dimakis and Karampatziakis, "Gradient Coding" (arXiv 1612.03301). The sum of all
partial gradients follows from any K - r + 1 messages; single tasks never do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polarcodes.checks import integer
from polarcodes.schedules import checks
from polarcodes.schedules.circulant import uc_mmc_coefficients

_DRAWS = 16


def gradient_coefficients(workers: int, load: int, *, seed: int = 0) -> NDArray[np.float64]:
    """Return the (r, K, K) table; a worker's message is the sum of its r codewords.

    Where r divides K, fractional repetition: K / r groups of r workers with the same r tasks and
    plain sums, complete once every group has answered (never later than K - r + 1 messages). Else
    cyclic repetition, worker k doing W_k..W_{k+r-1}, with real coefficients. Raises
    :class:`~polarcodes.errors.InvalidCode`.
    """
    K, r = checks.workers_and_load(workers, load)
    rng = np.random.default_rng(integer("seed", seed, 0, None))
    if K % r:
        return _cyclic(K, r, rng)
    table = np.zeros((r, K, K))
    k = np.arange(K)
    for t in range(r):
        table[t, k, k // r * r + t] = 1.0
    return table


def _cyclic(K: int, r: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Tandon's algorithm 2, the draw with the smallest coefficients of several.

    All messages lie in the null space of a random (r - 1) x K matrix H whose rows add up to zero,
    as (1, ..., 1) does; that space has K - r + 1 dimensions, and any K - r + 1 messages span it.
    """
    positions = (np.arange(K)[:, None] + np.arange(r)) % K
    best = np.zeros((K, r))
    smallest = np.inf
    for _ in range(_DRAWS):
        H = rng.standard_normal((r - 1, K))
        H[:, -1] = -H[:, :-1].sum(axis=1)
        window = np.moveaxis(H[:, positions], 1, 0)  # (K, r - 1, r)
        rest = np.linalg.solve(window[:, :, 1:], -window[:, :, :1])[:, :, 0]
        drawn = np.concatenate([np.ones((K, 1)), rest], axis=1)
        drawn /= np.abs(drawn).max(axis=1, keepdims=True)
        spread = 1.0 / np.abs(drawn).min()
        if spread < smallest:
            best, smallest = drawn, spread
    table = uc_mmc_coefficients(K, r)
    k = np.arange(K)
    for t in range(r):
        table[t, k, positions[:, t]] = best[:, t]
    return table
