"""Checks of what callers hand in: workers, answers, blocks and integer parameters."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.errors import InvalidAnswers, InvalidBlocks, InvalidCode, InvalidWorkers

_ROWS_AT_A_TIME = 1 << 16  # elements looked at together: 256 KB of float32, within the L2 cache


def integer(name: str, value: object, low: int, high: int | None, *, hint: str = "") -> int:
    """Return ``value`` as an int within ``low..high``, or raise :class:`InvalidCode`."""
    rule = f"an integer of at least {low}" if high is None else f"an integer in {low}..{high}"
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]  # anything: that is the check
    except TypeError:
        raise InvalidCode(f"{name} must be {rule}, got {value!r}{hint}") from None
    if number < low or (high is not None and number > high):
        raise InvalidCode(f"{name} must be {rule}, got {number}{hint}")
    return number


def real(name: str, value: object) -> float:
    """Return ``value`` as a float, or raise :class:`InvalidCode`."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.floating)):
        raise InvalidCode(f"{name} must be a number, got {value!r}")
    return float(value)


def worker_indices(S: Iterable[int], workers: int) -> NDArray[np.intp]:
    """Return S as an index array, its order kept; refuse duplicates and indices out of range."""
    listed = S if isinstance(S, np.ndarray) else list(S)
    given = np.asarray(listed)
    if given.size == 0 and given.ndim == 1:
        return np.empty(0, np.intp)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise InvalidWorkers(
            f"S must be a list of worker indices, got an array of shape {given.shape} and dtype "
            f"{given.dtype}"
        )
    outside = given[(given < 0) | (given >= workers)]
    if outside.size:
        raise InvalidWorkers(f"S must hold indices in 0..{workers - 1}, got {outside[0]}")
    indices = given.astype(np.intp)
    counts = np.bincount(indices, minlength=workers)
    if counts.max() > 1:
        twice = int(np.argmax(counts > 1))
        raise InvalidWorkers(f"S must name each worker once, got worker {twice} more than once")
    return indices


def answer_rows(Y: Any, workers: NDArray[np.intp]) -> NDArray[Any]:
    """Return Y as an (m, L) float32 or float64 array in native byte order.

    float16 widens to float32, integers and bool to float64; strides are left as they are, and so
    is Y. Whether the values are finite is checked by :func:`require_finite_answers`.
    """
    answers = np.asarray(Y)
    if answers.ndim != 2 or answers.shape[0] != len(workers):
        raise InvalidAnswers(
            f"Y must have shape ({len(workers)}, L), one row for each worker of S, got "
            f"{answers.shape}"
        )
    kind, size = answers.dtype.kind, answers.dtype.itemsize
    if kind not in "biuf" or (kind == "f" and size > 8):
        raise InvalidAnswers(f"Y must be real numbers of at most 64 bits, got {answers.dtype}")
    dtype = np.float32 if kind == "f" and size <= 4 else np.float64
    return answers.astype(dtype, copy=False)


def require_finite_answers(answers: NDArray[Any], workers: NDArray[np.intp]) -> None:
    """Refuse NaN and infinity: they are a worker's error, never an erasure."""
    row = first_not_finite_row(answers)
    if row is not None:
        raise InvalidAnswers(
            f"Y must be finite, got NaN or infinity from worker {int(workers[row])}. Leave that "
            "worker out of S to treat its answer as missing"
        )


def first_not_finite_row(rows: NDArray[Any]) -> int | None:
    """Return the first row that holds NaN or infinity; None when all are finite."""
    step = max(1, _ROWS_AT_A_TIME // max(1, rows.shape[1]))
    for start in range(0, rows.shape[0], step):
        finite = np.isfinite(rows[start : start + step])
        if not finite.all():
            return start + int(np.argmin(finite.all(axis=1)))
    return None


def data_rows(U: Any, data_blocks: int) -> NDArray[Any]:
    """Return U as an (s, L) array of real numbers, whatever its strides and byte order."""
    blocks = np.asarray(U)
    if blocks.ndim != 2 or blocks.shape[0] != data_blocks:
        raise InvalidBlocks(
            f"U must have shape ({data_blocks}, L), one row for each data block, got {blocks.shape}"
        )
    if blocks.dtype.kind not in "biuf" or blocks.dtype.itemsize > 8:
        raise InvalidBlocks(f"U must be real numbers of at most 64 bits, got {blocks.dtype}")
    return blocks


def value_range(blocks: NDArray[Any]) -> tuple[float | int, float | int]:
    """Return the least and the largest value as Python numbers; refuse NaN and infinity.

    Integers keep all their digits (a uint64 does not fit a float).
    """
    if blocks.size == 0:
        return 0, 0
    if blocks.dtype.kind == "b":
        return 0, 1
    step = max(1, _ROWS_AT_A_TIME // max(1, blocks.shape[1]))
    lows, highs = [], []
    for start in range(0, blocks.shape[0], step):
        part = blocks[start : start + step]
        lows.append(part.min().item())
        highs.append(part.max().item())
        if not (np.isfinite(lows[-1]) and np.isfinite(highs[-1])):
            row = start + (first_not_finite_row(part) or 0)
            raise InvalidBlocks(f"U must be finite, got NaN or infinity in data block {row}")
    return min(lows), max(highs)
