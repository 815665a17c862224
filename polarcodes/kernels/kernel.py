"""Kernels of polar codes: small matrices that polarise, and the criterion that says which do.

An l x l kernel K turns inputs u_1..u_l into outputs y = K u, decoded in the order 1..l. K meets the
order-statistic criterion if every k x k submatrix of any k rows and the LAST k columns is
invertible, k = 1..l: then any l - i + 1 outputs give input i once the earlier ones are known, so
that input i is there at the (l - i + 1)-th smallest of the l answer times, which is the best
possible. The criterion follows arXiv 2309.00682, its test is derived here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.errors import InvalidCode

Float = NDArray[np.float64]

LARGEST = 16
"""Largest kernel: the criterion looks at 2^l submatrices."""

_SINGULAR = 1e-9  # singular values below this share of the kernel's largest count as zero


@cache
def hadamard_kernel() -> Float:
    """Return [[1, 1], [1, -1]]: exact in integers."""
    return _frozen(np.array([[1.0, 1.0], [1.0, -1.0]]))


@cache
def dct_kernel(size: int = 3) -> Float:
    """Return the DCT-III of order l times sqrt(l): K^T K = l I, first column all ones.

    Every size meets the criterion: up to a sign of each row the last k columns are the sines
    sin(j t), j = k..1, at distinct t in (0, pi), which form a Chebyshev system. Their submatrices
    get badly conditioned as l grows.

    >>> dct_kernel(3).round(3).tolist()
    [[1.0, 1.225, 0.707], [1.0, 0.0, -1.414], [1.0, -1.225, 0.707]]
    """
    row, column = np.arange(size)[:, None], np.arange(size)
    matrix = np.sqrt(2.0) * np.cos(np.pi * (2 * row + 1) * column / (2 * size))
    matrix[:, 0] = 1.0
    matrix[np.abs(matrix) < 1e-12] = 0.0  # the cosine of a right angle
    return _frozen(matrix)


def polarises(kernel: NDArray[Any]) -> bool:
    """Return whether a square matrix meets the order-statistic criterion. 2^l small SVDs.

    >>> polarises(np.array([[1, 1], [1, -1]])), polarises(np.array([[1, 0], [1, 1]]))
    (True, False)
    """
    size = len(kernel)
    floor = _SINGULAR * np.linalg.norm(kernel, 2)
    for k in range(1, size + 1):
        rows = np.array(list(combinations(range(size), k)))
        submatrices = kernel[rows][:, :, size - k :]
        if np.linalg.svd(submatrices, compute_uv=False)[:, -1].min() <= floor:
            return False
    return True


def checked_kernel(name: str, kernel: Any) -> Float:
    """Return a polarising kernel as float64, read only, or raise InvalidCode."""
    try:
        matrix = np.array(kernel, dtype=np.float64)
    except (TypeError, ValueError):
        matrix = np.empty(0)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InvalidCode(f"{name} must be a square matrix of numbers, got {kernel!r}")
    if not 2 <= len(matrix) <= LARGEST or not np.isfinite(matrix).all():
        raise InvalidCode(
            f"{name} must have 2 to {LARGEST} rows of finite numbers, got {len(matrix)} rows"
        )
    if not polarises(matrix):
        raise InvalidCode(
            f"{name} does not polarise: some k of its rows are singular in its last k columns. "
            "Reorder its columns, or take [[1, 1], [1, -1]] or polarcodes.kernels.kernel.dct_kernel"
        )
    return _frozen(matrix)


def default_kernels(order: int) -> tuple[Float, ...]:
    """Return the kernels of order 2^a 3^b, outermost first: Hadamard, then DCT."""
    kernels: list[Float] = []
    for kernel in (hadamard_kernel(), dct_kernel(3)):
        while order % len(kernel) == 0:
            kernels.append(kernel)
            order //= len(kernel)
    if order != 1:
        raise InvalidCode(f"the order must be 2^a 3^b, got a factor {order}")
    return tuple(kernels)


def next_order(workers: int, radices: Sequence[int]) -> int:
    """Return the least product of powers of ``radices`` that is at least N.

    >>> next_order(65, (2, 3)), next_order(65, (2,))
    (72, 128)
    """
    best = 1
    while best < workers:
        best *= radices[0]
    for radix in radices[1:]:
        power = radix
        while power < best:
            best = min(best, power * next_order(-(-workers // power), radices[:1]))
            power *= radix
    return best


def _frozen(matrix: Float) -> Float:
    matrix.flags.writeable = False
    return matrix
