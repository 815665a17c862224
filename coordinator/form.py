"""What the answers of a run look like, and how they make up its product."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from blockstore.manifest import Manifest
from blockstore.pairs import MatrixPair, Subject
from blockstore.records import RunSpec
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

    @classmethod
    def of_pair(cls, pair: MatrixPair) -> AnswerForm:
        """The form of the answers to A B, both encoded: blocks of (b1, b2)."""
        coded = [np.dtype(manifest.dtype) for manifest in (pair.left, pair.right)]
        kinds = [pair.dtype, *(dtype for dtype in coded if dtype.kind == "f")]
        return cls(
            block_shape=(pair.left.block_rows, pair.right.block_rows),
            dtype=pair.dtype,
            epsilon=max(float(np.finfo(kind).eps) for kind in kinds),
            shares=pair.shares,
            layout=Layout.of_pair(pair),
        )

    @classmethod
    def of_run(cls, subject: Subject, spec: RunSpec) -> AnswerForm:
        """The form of the answers of a run."""
        if isinstance(subject, MatrixPair):
            return cls.of_pair(subject)
        return cls.of(subject, spec.x_shape, spec.x_dtype)

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
