"""Two factors before they are encoded: their manifests and a worker's task, with placeholders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from blockstore.manifest import Manifest
from blockstore.pair_tasks import PairTask
from blockstore.pairs import MatrixPair
from blockstore.tiling import choose_tiling
from coordinator.expected_time import full_range
from polarcodes import ErasureCode

__all__ = ["Factor", "planned_pair", "planned_task"]

PLANNED_RUN, PLANNED_DIGEST = "0" * 26, "sha256:" + "0" * 64


@dataclass(frozen=True)
class Factor:
    """A factor by its rows (of A, or of B^T), the inner dimension, dtype and storage order."""

    rows: int
    inner: int
    dtype: np.dtype[Any]
    order: str = "C"

    @property
    def value_range(self) -> tuple[float, float]:
        """What a plan assumes before the data are read."""
        return full_range(self.dtype)


def planned_pair(
    left: Factor, right: Factor, codes: tuple[ErasureCode, ErasureCode], memory: int = 1 << 30
) -> MatrixPair:
    """The two manifests as encoding would write them, with placeholder digests."""
    manifests = []
    for name, factor, code in (("a", left, codes[0]), ("b", right, codes[1])):
        rows = -(-factor.rows // code.data_blocks)
        coded = code.encoded_dtype(factor.dtype, *factor.value_range)
        tiling = choose_tiling(
            rows, factor.inner, coded.itemsize, code.workers, memory, order=factor.order
        )
        manifests.append(
            Manifest(
                name=name,
                created="planned",
                rows=factor.rows,
                columns=factor.inner,
                source_dtype=factor.dtype.newbyteorder("<").str,
                block_rows=rows,
                dtype=coded.newbyteorder("<").str,
                tiling=tiling,
                code=code.to_manifest(),
                encoding="0" * 16,
                source_digest="planned",
                source="planned",
            )
        )
    return MatrixPair(*manifests)


def planned_task(pair: MatrixPair) -> PairTask:
    """The task of the last worker, whose event is the longest."""
    return PairTask.of(
        pair, run=PLANNED_RUN, attempt=0, worker=pair.workers - 1, x_digest=PLANNED_DIGEST
    )
