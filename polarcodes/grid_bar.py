"""The error of the estimate T when both factors are coded by randomised Hadamard transforms.

T - Y = M Y with M = (1/m) Z_S^T Z_S - I on the data blocks (k, l), Z = Z^A (x) Z^B.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from polarcodes.code import ErasureCode
from polarcodes.hadamard import HadamardCode
from polarcodes.polar import PolarCode

if TYPE_CHECKING:
    from polarcodes.grid import GridCode

Ids = NDArray[np.intp]
Float = NDArray[np.float64]

_DRAWS = 200
_QUANTILE = 0.98  # of the draws, for a bound that holds with 95 %
_CELLS = 256  # data blocks looked at, each with all the product in it


@dataclass(frozen=True)
class Sampling:
    """order : N', the workers that the two whole transforms would have; factor : c."""

    order: int
    factor: float

    def error(self, arrived: int) -> float:
        """Return sqrt(c (N' - m) / (m (N' - 1))), the rms over sets S of m answers and over signs.

        For any G^T G = N I the relative mean squared error is (N - m) / (m (N - 1)) times
        mean_i ||z_i||^2 ||y_i||^2 / ||Y||^2 - 1. The mean is the product of those of the two codes,
        because z_ij = z_i (x) z_j: 1 + c = (1 + c1)(1 + c2), and s1 s2 for entries of +-1.
        """
        missing = self.order - arrived
        return math.sqrt(self.factor * missing / (arrived * max(self.order - 1, 1)))


def sampling(left: ErasureCode, right: ErasureCode) -> Sampling | None:
    """Return the sampling error of two codes; None unless both are Hadamard or polar codes."""
    parts = [_component(code) for code in (left, right)]
    if parts[0] is None or parts[1] is None:
        return None
    (first, one), (second, other) = parts[0], parts[1]
    return Sampling(first * second, (1 + one) * (1 + other) - 1)


def _component(code: ErasureCode) -> tuple[int, float] | None:
    if isinstance(code, HadamardCode):
        order = code.rounds.order
    elif isinstance(code, PolarCode):
        order = code.workers
    else:
        return None
    if code.workers == 1:
        return order, 0.0
    return order, code.predicted_error(1) ** 2  # c (N - 1) / (1 (N - 1))


def measured_bar(code: GridCode, sampling: Sampling, workers: Ids) -> float:
    """Return a bound that ||T - Y|| / ||Y|| exceeds with probability 5 % at most over the signs.

    The signs of the data blocks are d_k d_l: s1 + s2 random bits for s1 s2 blocks, so that errors
    in one row of blocks have a sign in common, and the closed form for independent signs is too
    small. Instead ||M Y|| is measured on products of rank one, whose errors scatter most: spread
    over the whole grid, over one row and over one column of blocks, with 200 draws of signs each.
    The largest of the three 98 % quantiles counts, and the error of a product that is all in one
    block, largest over 256 blocks. Never more than the norm of M: max(1, N'/m - 1). A function of S
    and the code alone (fixed draws). O(N log N) for each draw.
    """
    arrived = workers.size
    if arrived == 0:
        return math.inf
    if arrived == sampling.order or (code.data_blocks == 1 and sampling.factor == 0):
        return 0.0
    cap = max(1.0, sampling.order / arrived - 1.0)
    probes = _probes(*code.data_grid)
    errors = code._adjoint(code._encode_rows(probes, workers), workers) / arrived - probes
    squares = np.sum(errors**2, axis=0)
    spread, single = squares[: 3 * _DRAWS].reshape(3, _DRAWS), squares[3 * _DRAWS :]
    worst = max(float(np.quantile(spread, _QUANTILE, axis=1).max()), float(single.max()))
    return min(cap, math.sqrt(worst))


def _probes(s1: int, s2: int) -> Float:
    """Return products of norm one as columns (s1 s2, 3 x 200 + at most 256)."""
    rng = np.random.Generator(np.random.Philox(s1 * 65_537 + s2))
    first = rng.choice((-1.0, 1.0), (s1, _DRAWS))
    second = rng.choice((-1.0, 1.0), (s2, _DRAWS))
    draws = np.arange(_DRAWS)
    row, column = np.zeros((s1, _DRAWS)), np.zeros((s2, _DRAWS))
    row[rng.integers(0, s1, _DRAWS), draws] = 1.0
    column[rng.integers(0, s2, _DRAWS), draws] = 1.0
    pairs = [
        (first / math.sqrt(s1), second / math.sqrt(s2)),
        (row, second / math.sqrt(s2)),
        (first / math.sqrt(s1), column),
    ]
    spread = [np.einsum("kd,ld->kld", u, v).reshape(s1 * s2, _DRAWS) for u, v in pairs]
    cells = rng.permutation(s1 * s2)[:_CELLS]
    single = np.zeros((s1 * s2, cells.size))
    single[cells, np.arange(cells.size)] = 1.0
    return np.concatenate([*spread, single], axis=1)
