"""How much memory one coded product needs, known before it is invoked."""

from __future__ import annotations

from math import prod

import numpy as np

from blockstore.pair_tasks import PairTask
from blockstore.tasks import WorkerTask

__all__ = [
    "PAIR_PIECE_BYTES",
    "PIECE_BYTES",
    "PREFETCH",
    "RUNTIME_BYTES",
    "pair_memory",
    "resident_memory",
    "worker_memory",
]

RUNTIME_BYTES = 120 << 20
"""Interpreter, NumPy, OpenBLAS, botocore with its S3 model, connections, thread stacks.

`python -m benchmarks.worker_memory` measures it (the row of the smallest block)."""

PREFETCH = 2
"""Tiles being fetched while one is multiplied."""

PIECE_BYTES = 1 << 20
"""A tile is converted and multiplied in pieces of this size, which stay in the cache."""

PAIR_PIECE_BYTES = 4 << 20
"""The same in a product of two blocks, where larger pieces make better use of BLAS."""


def worker_memory(task: WorkerTask) -> int:
    """Peak memory of a worker in bytes, an upper bound that `benchmarks.worker_memory` checks.

    Runtime + x as stored, as fetched and as multiplied + the sum being accumulated, the answer and
    its copy on the way out + (PREFETCH + 1) tiles + one body being assembled + one piece. It does
    not depend on the number of tiles, hence hardly on the block.
    """
    stored, computed = np.dtype(task.x_dtype).itemsize, task.result_dtype.itemsize
    x_bytes = prod(task.x_shape) * (2 * stored + computed)
    copies = 2 if task.per_object == 1 else 3 * task.per_object  # kept until an object is full
    answer_bytes = prod(task.result_shape) * (8 + copies * computed)
    tile_bytes = task.tiling.bytes(np.dtype(task.dtype).itemsize)
    piece_bytes = max(PIECE_BYTES, max(task.tile_rows, task.tile_columns) * computed)
    return RUNTIME_BYTES + x_bytes + answer_bytes + (PREFETCH + 2) * tile_bytes + 2 * piece_bytes


def pair_memory(task: PairTask) -> int:
    """Peak memory in bytes of a worker that multiplies two coded blocks, an upper bound.

    Runtime + the sum in float64, the answer, its copy on the way out and a partial product + the
    rows held of one block + (PREFETCH + 2) tiles of one block, or of both when they are read in
    step + converted pieces (`benchmarks.matmul` checks it).
    """
    computed = task.result_dtype.itemsize
    answer_bytes = prod(task.result_shape) * (8 + 3 * computed)
    blocks = (task.left, task.right)
    tiles = [block.tiling.bytes(np.dtype(block.dtype).itemsize) for block in blocks]
    way = task.reading
    moving = sum(tiles) if way.held is None else max(tiles)
    held = way.band_rows * task.left.columns * computed
    return RUNTIME_BYTES + answer_bytes + held + (PREFETCH + 2) * moving + 3 * PAIR_PIECE_BYTES


def resident_memory(task: WorkerTask) -> int:
    """Peak memory of a resident worker in bytes: that of one product, and its blocks, which stay.

    `task` names the largest x that it will be asked to multiply by.
    """
    block_bytes = task.block_rows * task.columns * np.dtype(task.dtype).itemsize
    return worker_memory(task) + task.subtasks * block_bytes
