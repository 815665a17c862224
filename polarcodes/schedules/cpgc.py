"""Coded partial gradient computation: the schedule of arXiv 1811.09271, section III.

Row 1 is uncoded. Every later row holds sums of two submatrices, taken from partitions of 1..K into
pairs: its first half of the workers from one partition, its second half from another, both shifted
so that a worker rarely meets a submatrix twice.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polarcodes.errors import InvalidCode
from polarcodes.schedules import checks

Pair = tuple[int, int]

_EXAMPLE = [(2, 3), (0, 2), (1, 3), (0, 1)]  # row 2 of the paper's example K = 4, counted from 0
_LONGEST = 3


def cpgc_coefficients(workers: int, load: int) -> NDArray[np.float64]:
    """Return the paper's table, (r, K, K): K a multiple of 4 and r <= 3.

    K = 4 has the row 2 of the paper's example, which is not what the recipe of K = 20 gives there.
    Raises :class:`~polarcodes.errors.InvalidCode`.

    >>> cpgc_coefficients(20, 3)[1:, 0].nonzero()[1] + 1
    array([ 3,  4, 10, 11])
    """
    K, r = checks.workers_and_load(workers, load)
    if K % 4 or r > _LONGEST:
        wrong = f"workers={K}" if K % 4 else f"load={r}"
        raise InvalidCode(
            f"the schedule 'cpgc' needs workers to be a multiple of 4 and load at most {_LONGEST}, "
            f"got {wrong}: use 'rcsc', which serves any of them"
        )
    rows: list[list[tuple[int, ...]]] = [[(task,) for task in range(K)]]
    rows += [list(row) for row in _coded_rows(K)[: r - 1]]
    return checks.table(rows, K)


def _coded_rows(K: int) -> list[list[Pair]]:
    half = K // 2
    neighbours = [(n, n + 1) for n in range(0, K, 2)]
    at_two = [(n + j, n + j + 2) for n in range(0, K, 4) for j in (0, 1)]
    mirrored = [(n, K - 1 - n) for n in range(half)]
    opposite = [(n, half + n) for n in range(half)]
    second = _EXAMPLE if K == 4 else _shifted(neighbours, -1) + _shifted(at_two, -1)
    return [second, _shifted(mirrored, 1) + _shifted(opposite, -2)]


def _shifted(pairs: list[Pair], right: int) -> list[Pair]:
    """The paper's circshift: to the right by ``right``."""
    start = -right % len(pairs)
    return pairs[start:] + pairs[:start]
