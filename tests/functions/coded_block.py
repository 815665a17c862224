"""A worker's task with its x and tiles in a bucket, made by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blockstore import keys
from blockstore.arrays import array_digest, encode_array
from blockstore.runs import RunStore
from blockstore.tasks import WorkerTask
from blockstore.tiling import Tiling
from tests.memory_bucket import MemoryBucket

RUN = keys.new_run_id(1_700_000_000_000, bytes(10))
ENCODING = "0123456789abcdef"


class Context:
    """What Lambda tells a handler about its invocation."""

    def __init__(self, seconds: float = 300.0) -> None:
        self.seconds = seconds

    def get_remaining_time_in_millis(self) -> int:
        return int(self.seconds * 1000)


@dataclass
class Block:
    bucket: MemoryBucket
    task: WorkerTask
    block: np.ndarray
    x: np.ndarray

    @property
    def store(self) -> RunStore:
        return RunStore(self.bucket, RUN)  # type: ignore[arg-type]


def make_block(
    block: np.ndarray, x: np.ndarray, tile: tuple[int, int], *, order: str = "C"
) -> Block:
    bucket = MemoryBucket()
    tiling = Tiling(*block.shape, *tile, order)
    task = WorkerTask(
        run=RUN,
        attempt=1,
        worker=3,
        workers=8,
        matrix="photos",
        encoding=ENCODING,
        block_rows=block.shape[0],
        columns=block.shape[1],
        tile_rows=tile[0],
        tile_columns=tile[1],
        dtype=block.dtype.str,
        x_shape=x.shape,
        x_dtype=x.dtype.str,
        x_digest=array_digest(x),
    )
    made = Block(bucket, task, block, x)
    made.store.save_x(x)
    for number in range(tiling.count):
        span = tiling.span(number)
        part = block[span.row0 : span.row1, span.col0 : span.col1]
        if order == "F":  # the header of a Fortran-ordered .npy over the transposed bytes
            from blockstore.arrays import npy_header

            body = npy_header(part.dtype, part.shape, fortran=True) + part.tobytes(order="F")
        else:
            body = encode_array(part)
        bucket.put(task.tile_key(number), body)
    bucket.requests.clear()
    return made
