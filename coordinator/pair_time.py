"""How long a product of two encoded matrices takes, with coding and without it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blockstore.pair_tasks import PairTask
from blockstore.pairs import MatrixPair
from coordinator.expected_time import ExpectedTime, expected_time, full_range
from coordinator.platform import Platform
from coordinator.task_time import BlockWork
from polarcodes import make_code
from polarcodes.delays import DelayModel
from polarcodes.grid import GridCode

TILE_BYTES = 8 << 20  # what the encoder aims at


@dataclass(frozen=True)
class PairWork(BlockWork):
    """The work of one worker of a matrix product: a block (rows, columns) times one of (k, columns)
    transposed. There is no x; `objects` counts the tiles of both blocks."""

    read_bytes: int = 0

    @property
    def block_bytes(self) -> int:
        """Bytes of the tiles that are read, of both blocks."""
        return self.read_bytes

    @property
    def x_bytes(self) -> int:
        """0: no x is read."""
        return 0

    @classmethod
    def of(cls, task: PairTask) -> PairWork:
        """The work of a task."""
        return cls(
            rows=task.left.rows,
            columns=task.left.columns,
            itemsize=np.dtype(task.left.dtype).itemsize,
            objects=task.tiles_read,
            k=task.right.rows,
            compute_itemsize=task.result_dtype.itemsize,
            read_bytes=task.bytes_read,
        )


def expected_pair_time(
    pair: MatrixPair,
    code: GridCode,
    work: PairWork,
    memory_mb: int,
    delays: DelayModel,
    platform: Platform,
    rounds: int,
    counts: NDArray[np.intp] | None = None,
) -> ExpectedTime:
    """Simulate the coded product and an uncoded one on the same grid, with the same delays.

    The uncoded grid cuts A into N1 and B into N2 blocks, in the dtype of the matrices, and waits
    for everybody.
    """
    return expected_time(
        code,
        work,
        np.dtype(pair.left.source_dtype),
        memory_mb,
        delays,
        platform,
        rounds,
        counts,
        plain=uncoded_pair_work(pair, work),
    )


def uncoded_pair_work(pair: MatrixPair, work: PairWork) -> PairWork:
    """The work of a worker of an uncoded grid of the same size."""
    sizes = []
    for manifest in (pair.left, pair.right):
        rows = -(-manifest.rows // manifest.workers)
        dtype = np.dtype(manifest.source_dtype)
        plain = make_code("uncoded", workers=manifest.workers, data_blocks=manifest.workers)
        sizes.append((rows, plain.encoded_dtype(dtype, *full_range(dtype)).itemsize))
    (b1, first), (b2, second) = sizes
    read = (b1 * first + b2 * second) * work.columns
    return PairWork(
        rows=b1,
        columns=work.columns,
        itemsize=first,
        objects=max(2, -(-read // TILE_BYTES)),
        k=b2,
        compute_itemsize=work.compute_itemsize,
        read_bytes=read,
    )
