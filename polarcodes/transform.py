"""The Hadamard transform over blocks, in chunks of columns that fit the cache.

H is the N x N Sylvester matrix, natural order, entries +1 and -1, not normalised: H H = N I and
H_N = H_a (x) H_b for N = a b. It acts on the rows of an (N, L) array and never exists as a matrix.
A chunk of columns is copied to a small scratch, transformed there and copied out, so the array
crosses the memory bus once, whatever N is.

Two kernels do the same sum. Floats go through the Kronecker factors, a few products with a small
Hadamard matrix in BLAS. Integers, and floats whose last bit must not depend on the width of the
chunk, go through log2 N butterfly stages (a, b) -> (a + b, a - b).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

SCRATCH_BYTES = 2 << 20
"""Bytes of scratch aimed at, two halves that take turns: each fits a 1 MiB L2 cache."""

_FACTOR = 16  # H16 is the fastest Kronecker factor in BLAS at the widths that fit the cache
_MAX_COLUMNS = 1024

# OpenBLAS shares a product among threads from 2^18 multiplications on. These products are too short
# for that: waiting for the threads costs more than it saves, and ten times more on busy cores.
SINGLE_THREAD = 1 << 17

Step = Callable[[], object]
Kernel = Callable[[NDArray[Any], NDArray[Any]], NDArray[Any]]
Rows = NDArray[np.intp]


@cache
def hadamard(order: int, dtype: str = "float64") -> NDArray[Any]:
    """Return the dense Sylvester matrix: a Kronecker factor here, an oracle in tests.

    >>> hadamard(4).astype(int).tolist()
    [[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]
    """
    matrix = np.ones((1, 1), dtype)
    while matrix.shape[0] < order:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    matrix.flags.writeable = False
    return matrix


def _factors(order: int) -> list[int]:
    """Split N into Kronecker factors of at most 16, the odd one first."""
    factors = []
    while order > _FACTOR:
        factors.append(_FACTOR)
        order //= _FACTOR
    return [order, *factors]


def kronecker_products(
    values: NDArray[Any], spare: NDArray[Any], *, group: int = 1
) -> NDArray[Any]:
    """Transform the rows of a contiguous float array by products with small Hadamard matrices.

    ``spare`` has the same shape. Both are overwritten; the one that holds the result is returned.
    With a ``group`` the stages within groups of that many rows are left out: H_{N/g} (x) I_g.
    """
    order, columns = values.shape
    outer = 1
    for factor in _factors(order // group):
        inner = order // (outer * factor)
        pieces = 1
        while pieces < inner and factor * factor * (inner // pieces) * columns > SINGLE_THREAD:
            pieces *= 2
        shape = (outer, factor, pieces, inner // pieces * columns)
        np.matmul(
            hadamard(factor, values.dtype.name),
            values.reshape(shape).swapaxes(1, 2),
            out=spare.reshape(shape).swapaxes(1, 2),
        )
        values, spare = spare, values
        outer *= factor
    return values


def butterflies(values: NDArray[Any], spare: NDArray[Any]) -> NDArray[Any]:
    """Transform the rows of a contiguous array by log2 N stages (a, b) -> (a + b, a - b).

    Exact in integers as long as the sums fit. In floats every column has the same bits whatever
    the number of columns. ``spare`` has the same shape. Both are overwritten; the one that holds
    the result is returned.
    """
    steps, result = butterfly_steps(values, spare)
    for step in steps:
        step()
    return result


def butterfly_steps(values: NDArray[Any], spare: NDArray[Any]) -> tuple[list[Step], NDArray[Any]]:
    """Return the stages as calls to make in order, and where the result will be.

    Making the views of a stage takes as long as a short stage itself, so whoever transforms many
    chunks in the same memory prepares the calls once.
    """
    steps: list[Step] = []
    half = values.shape[0] // 2
    while half:
        steps += butterfly_stage(values, spare, half)
        values, spare = spare, values
        half //= 2
    return steps, values


def butterfly_stage(values: NDArray[Any], sums: NDArray[Any], half: int) -> list[Step]:
    """Return the calls that write (a + b, a - b) to ``sums`` for rows ``half`` apart."""
    order, columns = values.shape
    shape = (order // (2 * half), 2, half * columns)
    pairs, out = values.reshape(shape), sums.reshape(shape)
    return [
        partial(np.add, pairs[:, 0], pairs[:, 1], out[:, 0]),
        partial(np.subtract, pairs[:, 0], pairs[:, 1], out[:, 1]),
    ]


@contextmanager
def without_ufunc_buffer() -> Iterator[None]:
    """Keep NumPy from copying operands whose runs are shorter than its buffer of 8192 values.

    It does so even where nothing is cast, and the later stages of the butterflies, which have short
    runs, take two to three times as long. The setting holds for this context only.

    >>> with without_ufunc_buffer():
    ...     np.getbufsize()
    128
    >>> np.getbufsize()
    8192
    """
    usual = np.setbufsize(128)
    try:
        yield
    finally:
        np.setbufsize(usual)


def chunk_columns(rows: int, itemsize: int, scratch_bytes: int = SCRATCH_BYTES) -> int:
    """Return how many columns of ``rows`` values fit the scratch: a multiple of 16 in 16..1024."""
    columns = scratch_bytes // (rows * itemsize) // 16 * 16
    return min(max(columns, 16), _MAX_COLUMNS)


def transform_rows(
    source: NDArray[Any],
    out: NDArray[Any],
    order: int,
    *,
    at: Rows | None = None,
    take: Rows | None = None,
    before: NDArray[Any] | None = None,
    after: NDArray[Any] | None = None,
    kernel: Kernel | None = None,
) -> None:
    """Write rows ``take`` of H applied to the rows of ``source`` placed at rows ``at``.

    Parameters
    ----------
    source : (r, L) array
        Placed at rows ``at`` of an (N, L) array that is zero elsewhere; all N rows when ``at`` is
        None. Never changed, unless it is ``out``.
    out : (t, L) array
        Receives rows ``take`` (all N when None); its dtype is the one that is computed in. It may
        be ``source`` itself, or share no memory with it.
    before, after : (r,) and (t,) arrays, optional
        Factors of the rows on the way in and out.
    kernel : optional
        :func:`kronecker_products` (the default for floats) or :func:`butterflies`.

    Notes
    -----
    N log2 N additions a column; scratch as :data:`SCRATCH_BYTES`.
    """
    dtype = out.dtype
    if kernel is None:
        kernel = kronecker_products if dtype.kind == "f" else butterflies
    total = out.shape[1]
    width = min(chunk_columns(2 * order, dtype.itemsize), max(total, 1))
    scratch = np.empty((2, order * width), dtype)
    scale_in = None if before is None else before.astype(dtype)[:, None]
    scale_out = None if after is None else after.astype(dtype)[:, None]
    with without_ufunc_buffer():
        for start in range(0, total, width):
            stop = min(start + width, total)
            values, spare = scratch[:, : order * (stop - start)].reshape(2, order, stop - start)
            # Plain copies between the caller's arrays and the scratch; a scatter or a product that
            # reaches into distant pages takes several times as long. A uint64 is converted first:
            # times a sign it would become float64.
            inside = values if at is None else spare[: len(at)]
            inside[...] = source[:, start:stop]
            if scale_in is not None:
                inside *= scale_in
            if at is not None:
                values[...] = 0
                values[at] = inside
            result = kernel(values, spare)
            if take is not None:
                other = spare if result is values else values
                result = result.take(take, axis=0, out=other[: len(take)], mode="clip")
            if scale_out is not None:
                result *= scale_out
            out[:, start:stop] = result


def transform_inplace(buffer: NDArray[Any], signs: NDArray[Any] | None = None) -> None:
    """Overwrite an (N, L) buffer with H applied to its rows, each times its sign first."""
    transform_rows(buffer, buffer, buffer.shape[0], before=signs)
