"""The verified answers of a run, held once, as they came."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.answers import AnswerMetadata
from blockstore.manifest import Manifest
from blockstore.tasks import compute_dtype

__all__ = ["Answers"]

CHUNK_BYTES = 16 << 20  # of float64 answers that are gathered at a time


class Answers:
    """Answers y_i by place in the code, each a flat array of L = block rows times k entries. The
    place is the worker's number where each worker has one block.

    epsilon: relative rounding of an answer. Blocks coded in float32 were rounded when they were
    encoded, whatever x they are multiplied by; integer blocks were not.

    The arrays are views of the bodies that came from the store: nothing is copied until a chunk of
    columns is gathered for the estimate or the decoder.
    """

    def __init__(self, manifest: Manifest, x_shape: tuple[int, ...], x_dtype: str) -> None:
        self.block_shape = (manifest.block_rows, *x_shape[1:])
        self.dtype = compute_dtype(manifest.dtype, x_dtype)
        coded = np.dtype(manifest.dtype)
        kinds = [self.dtype, coded] if coded.kind == "f" else [self.dtype]
        self.epsilon = max(float(np.finfo(kind).eps) for kind in kinds)
        self.length = math.prod(self.block_shape)
        self.result_shape = (manifest.rows, *x_shape[1:])
        self.data_blocks = manifest.data_blocks
        self.shares = manifest.shares
        self.metadata: dict[int, AnswerMetadata] = {}
        self._rows: dict[int, NDArray[Any]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, worker: int) -> bool:
        return worker in self._rows

    def add(self, worker: int, answer: NDArray[Any], metadata: AnswerMetadata) -> None:
        """Keep a verified answer of shape `block_shape`; the first one for a place stays."""
        if worker not in self._rows:
            self._rows[worker] = answer.reshape(-1)
            self.metadata[worker] = metadata

    def gather(self, workers: Sequence[int], first: int, last: int) -> NDArray[Any]:
        """Columns `first` to `last` (excluded) of the answers of `workers`, as (m, columns)."""
        chunk = np.empty((len(workers), last - first), self.dtype)
        for row, worker in enumerate(workers):
            chunk[row] = self._rows[worker][first:last]
        return chunk

    def chunks(self, workers: Sequence[int]) -> list[tuple[int, int]]:
        """Column ranges whose gathered float64 answers have `CHUNK_BYTES` at most."""
        step = max(1, CHUNK_BYTES // (8 * max(1, len(workers))))
        return [(a, min(a + step, self.length)) for a in range(0, self.length, step)]

    def empty_product(self) -> NDArray[Any]:
        """An uninitialised (s, L) array in the answers' dtype, to be filled chunk by chunk."""
        return np.empty((self.data_blocks, self.length), self.dtype)

    def trim(self, product: NDArray[Any]) -> NDArray[Any]:
        """(s, L) -> the product's own shape, (n,) or (n, k), without the padding rows; a view."""
        rows = product.reshape(self.data_blocks * self.block_shape[0], *self.block_shape[1:])
        return rows[: self.result_shape[0]]

    def scale(self, workers: Sequence[int]) -> float:
        """rms of the workers' ||row|| ||x||, the size of what was added up in their products."""
        scales = [self.metadata[w].scale for w in workers]
        return math.hypot(*scales) / math.sqrt(len(scales)) if scales else 0.0
