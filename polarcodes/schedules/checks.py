"""Checks of schedules: the table, its parameters, and the tolerance."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarcodes.checks import integer, real
from polarcodes.errors import InvalidCode


def name(value: object) -> str:
    """Return a name that is text and not empty."""
    if not isinstance(value, str) or not value:
        raise InvalidCode(f"name must be text that is not empty, got {value!r}")
    return value


def sending(value: object, allowed: Sequence[str]) -> str:
    """Return one of the ways of sending."""
    if not isinstance(value, str) or value not in allowed:
        raise InvalidCode(f"sending must be one of {', '.join(allowed)}, got {value!r}")
    return value


def workers_and_load(workers: object, load: object) -> tuple[int, int]:
    """Return K and r with 1 <= r <= K."""
    K = integer("workers", workers, 1, None)
    hint = ": with M = K tasks a worker has at most K different ones; use more workers or less load"
    return K, integer("load", load, 1, K, hint=hint)


def tolerance(value: object) -> float:
    """Return the share of the tasks that may be missing, in [0, 1)."""
    share = real("tolerance", value)
    if not 0.0 <= share < 1.0:
        raise InvalidCode(
            f"tolerance must be a share of the tasks in [0, 1), got {share}: 0.05 lets one task in "
            "twenty be missing"
        )
    return share


def needed(tasks: int, missing_share: float) -> int:
    """Return how many of M tasks must be recovered at a tolerance."""
    return math.ceil((1.0 - tolerance(missing_share)) * tasks - 1e-9)


def coefficients(given: ArrayLike) -> NDArray[np.float64]:
    """Return a checked copy of an (r, K, M) table, C-contiguous float64."""
    try:
        table = np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise InvalidCode("coefficients must be an (r, K, M) array of real numbers") from None
    if table.ndim != 3 or table.size == 0:
        raise InvalidCode(
            f"coefficients must have shape (r, K, M), load, workers, tasks, got {table.shape}"
        )
    load, _, tasks = table.shape
    if load > tasks:
        raise InvalidCode(
            f"load must be at most the number of tasks {tasks}, got {load} rows: a worker cannot "
            "do more different tasks than there are"
        )
    if not np.isfinite(table).all():
        raise InvalidCode("coefficients must be finite, got NaN or infinity")
    used = table != 0
    _refuse_empty(used)
    _refuse_repeated(table, used)
    nowhere = np.flatnonzero(~used.any(axis=(0, 1)))
    if nowhere.size:
        raise InvalidCode(
            f"coefficients must give every task to a worker, got nobody for W{nowhere[0] + 1}: it "
            "could never be recovered"
        )
    return table


def _refuse_empty(used: NDArray[np.bool_]) -> None:
    empty = np.argwhere(~used.any(axis=2))
    if empty.size:
        row, worker = empty[0]
        raise InvalidCode(
            f"coefficients must have no empty task, got one without any submatrix in row "
            f"{row + 1} of worker {worker + 1}: shorten the schedule or fill it"
        )


def _refuse_repeated(table: NDArray[np.float64], used: NDArray[np.bool_]) -> None:
    """Refuse a worker with two codewords of which one is a multiple of the other."""
    first = used.argmax(axis=2)
    scaled = table / np.take_along_axis(table, first[:, :, None], axis=2)
    for later in range(1, len(table)):
        for earlier in range(later):
            same = np.isclose(scaled[later], scaled[earlier], rtol=1e-12, atol=0).all(axis=1)
            if same.any():
                raise InvalidCode(
                    f"coefficients must have no repeated task, got the codeword of row "
                    f"{earlier + 1} again in row {later + 1} of worker {int(same.argmax()) + 1}: "
                    "its second result would tell nothing new"
                )


def table(codewords: object, tasks: object) -> NDArray[np.float64]:
    """Return the coefficients of a table of lists of tasks: (r, K) lists -> (r, K, M)."""
    M = integer("tasks", tasks, 1, None)
    if not isinstance(codewords, Sequence) or not codewords:
        raise InvalidCode("table must be a list of rows, each a list of one codeword per worker")
    widths = {len(row) if isinstance(row, Sequence) else -1 for row in codewords}
    if len(widths) > 1 or min(widths) < 1:
        raise InvalidCode("table must have one codeword for each worker in every row")
    out = np.zeros((len(codewords), widths.pop(), M))
    for t, row in enumerate(codewords):
        for k, codeword in enumerate(row):
            place = f"row {t + 1} of worker {k + 1}"
            if not isinstance(codeword, Sequence) or not codeword:
                raise InvalidCode(
                    f"table must have no empty task, got {codeword!r} in {place}: list the tasks "
                    "it adds up"
                )
            for task in codeword:
                m = integer(f"table: a task in {place}", task, 0, M - 1)
                if out[t, k, m]:
                    raise InvalidCode(
                        f"table must have no repeated task, got W{m + 1} twice in {place}"
                    )
                out[t, k, m] = 1.0
    return out
