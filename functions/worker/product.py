"""One coded product: block times x, tile by tile, in bounded memory.

While one tile is multiplied the next ones are being fetched. Tiles of integers are converted piece
by piece to the dtype of the product, so that no converted copy of a tile exists. Products of pieces
are summed in float64, so that cutting a row into tiles costs no accuracy.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.arrays import array_digest
from blockstore.memory import PIECE_BYTES
from blockstore.runs import RunStore
from blockstore.tasks import WorkerTask
from blockstore.tiling import TileSpan
from functions.worker.faults import NotFinite, OutOfTime, WrongInput
from functions.worker.stop import Looks
from functions.worker.tiles import stream_tiles

TIME_RESERVE = 2.0  # seconds kept for saying that the time is up


@dataclass(frozen=True)
class Product:
    """The answer y = block x, of shape `task.result_shape`, and where the time went (seconds).

    scale: rms over the block's rows of ||row|| ||x||, for one column of x; looks: for the stop
    marker.
    """

    value: NDArray[Any]
    seconds_read: float
    seconds_multiply: float
    scale: float
    looks: int = 0


def load_x(store: RunStore, task: WorkerTask) -> NDArray[Any]:
    """x as (d, k) in the dtype of the product; raises WrongInput if it is another one."""
    return take_x(store.load_x(), task)


def take_x(x: NDArray[Any], task: WorkerTask) -> NDArray[Any]:
    """The same of an x that is here already."""
    if array_digest(x) != task.x_digest:
        raise WrongInput(
            f"x of run {task.run} is not the vector that was dispatched (digest {array_digest(x)}, "
            f"the task says {task.x_digest}): start a new run"
        )
    return np.ascontiguousarray(x.reshape(task.columns, -1), dtype=task.result_dtype)


def stop_marker(store: RunStore, task: WorkerTask) -> bool:
    """Whether the stop marker of the task's attempt is there."""
    return store.stopped(task.attempt)


@dataclass(frozen=True)
class Inputs:
    """Where a product's parts come from: x, a block's tiles, and whether the run was stopped."""

    x: Callable[[RunStore, WorkerTask], NDArray[Any]] = load_x
    tiles: Callable[[RunStore, WorkerTask, int], Iterator[tuple[TileSpan, NDArray[Any]]]] = (
        stream_tiles
    )
    stopped: Callable[[RunStore, WorkerTask], bool] = stop_marker


STORED = Inputs()


def multiply(
    store: RunStore,
    task: WorkerTask,
    time_left: Callable[[], float],
    *,
    subtask: int = 0,
    inputs: Inputs = STORED,
) -> Product:
    """Compute the product of one of a worker's blocks.

    Parameters
    ----------
    time_left : seconds until the platform ends this invocation
    subtask : which of the worker's blocks
    inputs : where x, the tiles and the stop come from

    Raises
    ------
    RunStopped : the stop marker of the task's attempt is there
    OutOfTime : less than `TIME_RESERVE` is left
    TileMissing, WrongInput, WrongShape, NotFinite : see `functions.worker.faults`
    blockstore.errors.StoreError : x or a tile cannot be read
    """
    looks = Looks(task, lambda: inputs.stopped(store, task))
    looks.before(f" task {subtask}" if subtask else "")
    waiting = time.monotonic()
    reading = multiplying = squares = 0.0
    x = inputs.x(store, task)
    total: NDArray[Any] = np.zeros((task.block_rows, x.shape[1]))
    buffer = np.empty(_piece_entries(task), dtype=x.dtype)
    for span, tile in inputs.tiles(store, task, subtask):
        ready = time.monotonic()
        reading += ready - waiting
        if time_left() < TIME_RESERVE:
            raise OutOfTime(
                "the function's time limit is near and the product is not done: give the function "
                "more time or memory, or encode with more data blocks"
            )
        looks.between()
        squares += _add_product(total, span, tile, x, buffer)
        del tile  # or it would still be held while the next one is awaited
        waiting = time.monotonic()
        multiplying += waiting - ready
    with np.errstate(over="ignore", invalid="ignore"):
        value = total.astype(task.result_dtype).reshape(task.result_shape)
    if not np.isfinite(value).all():
        raise NotFinite(
            f"the product has NaN or Inf: the values of the matrix or of x are too large for "
            f"{task.result_dtype}; scale them down, or encode the matrix as float64"
        )
    scale = float(np.sqrt(squares / task.block_rows / x.shape[1]) * np.linalg.norm(x))
    return Product(value, reading, multiplying, scale, looks.count)


def _piece_entries(task: WorkerTask) -> int:
    """Entries of a converted piece: `PIECE_BYTES`, or one row or column of a tile if longer."""
    longest = max(task.tile_rows, task.tile_columns)
    return max(PIECE_BYTES // task.result_dtype.itemsize, longest)


def _add_product(
    total: NDArray[Any],
    span: TileSpan,
    tile: NDArray[Any],
    x: NDArray[Any],
    buffer: NDArray[Any],
) -> float:
    """total[rows] += tile x[columns], piece by piece; returns the sum of the tile's squares.

    Pieces are rows of a C-ordered tile and columns of a Fortran-ordered one: contiguous either way.
    """
    rows, columns = tile.shape
    by_rows = tile.flags.c_contiguous
    length, count = (columns, rows) if by_rows else (rows, columns)
    step = max(1, buffer.size // length)
    squares = 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        for first in range(0, count, step):
            last = min(first + step, count)
            lines = tile[first:last] if by_rows else tile[:, first:last].T
            flat = lines.reshape(-1)
            if tile.dtype != x.dtype:
                np.copyto(buffer[: flat.size], flat)
                flat = buffer[: flat.size]
            squares += float(np.dot(flat, flat))
            piece = flat.reshape(last - first, length)
            if by_rows:
                part = x[span.col0 : span.col1]
                total[span.row0 + first : span.row0 + last] += piece @ part
            else:
                part = x[span.col0 + first : span.col0 + last]
                total[span.row0 : span.row1] += piece.T @ part
    return squares
