"""MCC: maximum distance separable coding, one message when all r tasks of a worker are done."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from polarcodes.checks import integer
from polarcodes.schedules import checks


def mcc_coefficients(workers: int, load: int, *, seed: int = 0) -> NDArray[np.float64]:
    """Return the (r, K, K) table of MCC: any ceil(K / r) workers determine all tasks.

    The tasks form ceil(K / r) blocks of r consecutive ones (the last may be shorter), and a worker
    computes one combination of the blocks with independent normal coefficients, position by
    position: its t-th codeword combines the t-th tasks of all blocks. Any square submatrix of a
    normal matrix is invertible with probability 1, and well conditioned more often than that of a
    real Vandermonde matrix. Raises :class:`~polarcodes.errors.InvalidCode`.
    """
    K, r = checks.workers_and_load(workers, load)
    rng = np.random.default_rng(integer("seed", seed, 0, None))
    generator = rng.standard_normal((K, math.ceil(K / r)))
    table = np.zeros((r, K, K))
    for t in range(r):
        tasks = np.arange(t, K, r)
        table[t][:, tasks] = generator[:, : tasks.size]
    return table
