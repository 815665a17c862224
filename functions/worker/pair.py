"""The product of two coded blocks in bounded memory: one of A times the transpose of one of B^T.

Both blocks are read tile by tile while the products of the last tiles are computed. Tiles that have
all rows are taken along the inner dimension, each once; else the rows of one block are held, as
many as fit `BAND_BYTES`, while the other block streams by (`blockstore.pair_tasks.Reading`).
Products of pieces are summed in float64.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.memory import PAIR_PIECE_BYTES
from blockstore.pair_tasks import CodedBlock, PairTask
from blockstore.runs import RunStore
from blockstore.tiling import TileSpan
from functions.worker.faults import NotFinite, OutOfTime
from functions.worker.product import TIME_RESERVE, Product
from functions.worker.stop import Looks
from functions.worker.tiles import stream_tiles

__all__ = ["multiply_pair"]

Tile = tuple[TileSpan, NDArray[Any]]


@dataclass
class _Watch:
    """Looks at the clock and for the stop marker between tiles, and adds up the time waited."""

    store: RunStore
    looks: Looks
    time_left: Callable[[], float]
    reading: float = 0.0

    def tiles(self, block: CodedBlock, only: range | None = None) -> Iterator[Tile]:
        """The tiles of a block in order; raises OutOfTime, RunStopped."""
        waiting = time.monotonic()
        for span, tile in stream_tiles(self.store, block, only=only):
            ready = time.monotonic()
            self.reading += ready - waiting
            self._check()
            self.looks.between()
            yield span, tile
            waiting = time.monotonic()

    def _check(self) -> None:
        if self.time_left() < TIME_RESERVE:
            raise OutOfTime(
                "the function's time limit is near and the product is not done: give the function "
                "more time or memory, or cut the matrices into more data blocks"
            )


def multiply_pair(store: RunStore, task: PairTask, time_left: Callable[[], float]) -> Product:
    """Compute the answer (b1, b2) of a worker of a matrix product.

    `scale` of the product is rms ||row of A|| times rms ||column of B||. Raises what
    `functions.worker.product.multiply` raises.
    """
    looks = Looks(task, lambda: store.stopped(task.attempt))
    looks.before()
    began = time.monotonic()
    watch = _Watch(store, looks, time_left)
    total: NDArray[Any] = np.zeros(task.result_shape)
    with np.errstate(over="ignore", invalid="ignore"):
        if task.reading.held is None:
            energies = _along_inner(watch, task, total)
        elif task.reading.held == "left":
            energies = _in_bands(watch, task, task.left, task.right, total)
        else:
            energies = _in_bands(watch, task, task.right, task.left, total.T)[::-1]
        value = total.astype(task.result_dtype)
    if not np.isfinite(value).all():
        raise NotFinite(
            f"the product has NaN or Inf: the values of the matrices are too large for "
            f"{task.result_dtype}; scale them down, or save them as float64"
        )
    first, second = (e / rows for e, rows in zip(energies, task.result_shape, strict=True))
    seconds = time.monotonic() - began
    scale = math.sqrt(first) * math.sqrt(second)
    busy = max(0.0, seconds - watch.reading)
    return Product(value, watch.reading, busy, scale, looks.count)


def _along_inner(watch: _Watch, task: PairTask, total: NDArray[Any]) -> tuple[float, float]:
    """Both blocks in step along the inner dimension, every tile once; the squares of both."""
    streams = [watch.tiles(block) for block in (task.left, task.right)]
    spans: list[TileSpan] = []
    parts: list[NDArray[Any]] = []
    for stream in streams:
        span, tile = next(stream)
        spans.append(span)
        parts.append(tile)
        del tile
    energies = [0.0, 0.0]
    column, step = 0, _columns(sum(task.result_shape), task.result_dtype)
    while True:
        last = min(column + step, spans[0].col1, spans[1].col1)
        pieces = [
            np.ascontiguousarray(
                part[:, column - span.col0 : last - span.col0], dtype=task.result_dtype
            )
            for part, span in zip(parts, spans, strict=True)
        ]
        total += pieces[0] @ pieces[1].T
        energies = [e + _energy(piece) for e, piece in zip(energies, pieces, strict=True)]
        column = last
        if column == task.left.columns:
            break
        for side, stream in enumerate(streams):
            if spans[side].col1 == column:
                parts[side] = np.empty((0, 0))  # or the old tile would be held beside the new one
                spans[side], parts[side] = next(stream)
    for stream in streams:
        stream.close()  # type: ignore[attr-defined]  # a generator: its threads end now
    return energies[0], energies[1]


def _in_bands(
    watch: _Watch, task: PairTask, held: CodedBlock, other: CodedBlock, total: NDArray[Any]
) -> tuple[float, float]:
    """Some rows of `held` at a time, all of `other` for each; the squares of both."""
    dtype, rows = task.result_dtype, task.reading.band_rows
    across = held.tiling.grid[1]
    energies = [0.0, 0.0]
    for first in range(0, held.rows, rows):
        last = min(first + rows, held.rows)
        band = np.empty((last - first, held.columns), dtype)
        wanted = range(first // held.tile_rows * across, -(-last // held.tile_rows) * across)
        for span, tile in watch.tiles(held, wanted):
            band[span.row0 - first : span.row1 - first, span.col0 : span.col1] = tile
            del tile
        energies[0] += _energy(band)
        for span, tile in watch.tiles(other):
            step = max(1, _columns(tile.shape[1], dtype))
            for row in range(0, tile.shape[0], step):
                piece = np.ascontiguousarray(tile[row : row + step], dtype=dtype)
                top = span.row0 + row
                part = band[:, span.col0 : span.col1] @ piece.T
                total[first:last, top : top + len(piece)] += part
                if first == 0:
                    energies[1] += _energy(piece)
            del tile
    return energies[0], energies[1]


def _columns(entries: int, dtype: np.dtype[Any]) -> int:
    """Lines of `entries` entries in a converted piece."""
    return max(1, PAIR_PIECE_BYTES // (max(1, entries) * dtype.itemsize))


def _energy(piece: NDArray[Any]) -> float:
    flat = piece.reshape(-1)
    return float(np.dot(flat, flat))
