"""What the answers of a run look like, and how they make up its product."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from blockstore.manifest import Manifest
from blockstore.subtasks import Subtasks
from blockstore.tasks import compute_dtype
from coordinator.layout import Layout

__all__ = ["AnswerForm"]


@dataclass(frozen=True)
class AnswerForm:
    """block_shape: of one answer; dtype: of answers and product; epsilon: relative rounding of an
    answer. Blocks coded in float32 were rounded when they were encoded, whatever x they are
    multiplied by; integer blocks were not. shares: which places of the code each worker has;
    layout: where the decoded blocks lie in the product.
    """

    block_shape: tuple[int, ...]
    dtype: np.dtype[Any]
    epsilon: float
    shares: Subtasks
    layout: Layout

    @classmethod
    def of(cls, manifest: Manifest, x_shape: tuple[int, ...], x_dtype: str) -> AnswerForm:
        """The form of the answers to A x, for an encoded A and x of shape (d,) or (d, k)."""
        dtype = compute_dtype(manifest.dtype, x_dtype)
        coded = np.dtype(manifest.dtype)
        kinds = [dtype, coded] if coded.kind == "f" else [dtype]
        return cls(
            block_shape=(manifest.block_rows, *x_shape[1:]),
            dtype=dtype,
            epsilon=max(float(np.finfo(kind).eps) for kind in kinds),
            shares=manifest.shares,
            layout=Layout.of(manifest, x_shape),
        )

    @property
    def length(self) -> int:
        """L, the entries of an answer."""
        return math.prod(self.block_shape)

    @property
    def data_blocks(self) -> int:
        """s, the rows of the decoded product."""
        return self.layout.blocks

    @property
    def answer_bytes(self) -> int:
        """Bytes of one answer, without the header of its file."""
        return self.length * self.dtype.itemsize
