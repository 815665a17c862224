"""A worker's two coded blocks in a bucket, made by hand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blockstore.arrays import encode_array, npy_header
from blockstore.pair_tasks import CodedBlock, PairTask
from blockstore.runs import RunStore
from tests.functions.coded_block import ENCODING, RUN
from tests.memory_bucket import MemoryBucket


@dataclass
class PairOfBlocks:
    bucket: MemoryBucket
    task: PairTask

    @property
    def store(self) -> RunStore:
        return RunStore(self.bucket, RUN)  # type: ignore[arg-type]

    @property
    def gets(self) -> int:
        return sum(kind == "get" for kind, _ in self.bucket.requests)


def make_pair(
    left: np.ndarray, right: np.ndarray, left_tile: tuple[int, int], right_tile: tuple[int, int]
) -> PairOfBlocks:
    """Blocks of A and of B^T; a tile with all rows is stored in Fortran order, as the encoder's."""
    bucket, blocks = MemoryBucket(), []
    for name, entries, tile in (("a", left, left_tile), ("b", right, right_tile)):
        block = CodedBlock(
            matrix=name,
            encoding=ENCODING,
            number=2,
            rows=entries.shape[0],
            columns=entries.shape[1],
            tile_rows=tile[0],
            tile_columns=tile[1],
            dtype=entries.dtype.str,
        )
        for number in range(block.tiling.count):
            span = block.tiling.span(number)
            part = entries[span.row0 : span.row1, span.col0 : span.col1]
            body = encode_array(part)
            if block.inner_cut:
                header = npy_header(part.dtype, part.shape, fortran=True)
                body = header + part.tobytes(order="F")
            bucket.put(block.tile_key(number), body)
        blocks.append(block)
    bucket.requests.clear()
    task = PairTask(
        run=RUN,
        attempt=1,
        worker=14,
        workers=36,
        left=blocks[0],
        right=blocks[1],
        encoding=ENCODING,
        x_digest="sha256:b",
    )
    return PairOfBlocks(bucket, task)
