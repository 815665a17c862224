"""Two encoded matrices that are multiplied by each other: A by rows, B as its transpose by rows.

Worker (i, j) of the N1 x N2 grid is number i N2 + j and multiplies coded block i of A (b1, d) by
the transpose of coded block j of B^T (b2, d).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from blockstore.bucket import Bucket
from blockstore.errors import ManifestError
from blockstore.manifest import Manifest, load_manifest
from blockstore.records import RunSpec
from blockstore.subtasks import Subtasks

__all__ = ["MatrixPair", "Subject", "load_subject", "pair_dtype"]


def pair_dtype(left: Any, right: Any) -> np.dtype[Any]:
    """The dtype in which two coded blocks are multiplied: float64 for two blocks of integers.

    A sum of d products of coded integers is beyond float32's 24 bits at once, and float64 holds it
    exactly up to 2^53. Integer products would wrap without a sign, so they are never taken.
    """
    kinds = np.dtype(left), np.dtype(right)
    if all(kind.kind in "iu" for kind in kinds):
        return np.dtype(np.float64)
    return np.result_type(*kinds, np.float32)


@dataclass(frozen=True)
class MatrixPair:
    """A (n1, d) and B (d, n2): the manifests of A and of B^T (n2, d).

    Raises `ManifestError` unless both have d columns and one block for each worker.
    """

    left: Manifest
    right: Manifest

    def __post_init__(self) -> None:
        if self.left.columns != self.right.columns:
            raise ManifestError(
                f"{self.left.name!r} has {self.left.columns} columns and {self.right.name!r} "
                f"{self.right.columns}: both must be encoded along the same inner dimension"
            )
        for manifest in (self.left, self.right):
            if manifest.subtasks is not None:
                raise ManifestError(
                    f"{manifest.name!r} has several blocks for each worker: encode a factor of a "
                    "matrix product without subtasks"
                )

    @property
    def name(self) -> str:
        """Name of A's encoding."""
        return self.left.name

    @property
    def shape(self) -> tuple[int, int]:
        """(n1, n2) of the product."""
        return self.left.rows, self.right.rows

    @property
    def rows(self) -> int:
        """n1, the rows of the product."""
        return self.left.rows

    @property
    def inner(self) -> int:
        """d, the inner dimension."""
        return self.left.columns

    @property
    def block_rows(self) -> int:
        """b1, the rows of an answer."""
        return self.left.block_rows

    @property
    def grid(self) -> tuple[int, int]:
        """(N1, N2)."""
        return self.left.workers, self.right.workers

    @property
    def data_grid(self) -> tuple[int, int]:
        """(s1, s2)."""
        return self.left.data_blocks, self.right.data_blocks

    @property
    def workers(self) -> int:
        """N = N1 N2."""
        return self.left.workers * self.right.workers

    @property
    def blocks(self) -> int:
        """N: each worker has one place in the code."""
        return self.workers

    @property
    def data_blocks(self) -> int:
        """s = s1 s2."""
        return self.left.data_blocks * self.right.data_blocks

    @cached_property
    def shares(self) -> Subtasks:
        """One task for each worker."""
        return Subtasks.single(self.workers)

    @property
    def subtasks(self) -> Subtasks | None:
        """None: one task for each worker."""
        return None

    @property
    def code(self) -> dict[str, Any]:
        """The manifest of the code of the grid (`polarcodes.grid.GridCode`)."""
        return {
            "name": "grid",
            "version": 1,
            "workers": self.workers,
            "data_blocks": self.data_blocks,
            "left": self.left.code,
            "right": self.right.code,
        }

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of answers and product."""
        return pair_dtype(self.left.dtype, self.right.dtype)

    @cached_property
    def encoding(self) -> str:
        """An id of both encodings, 16 hex digits: part of every answer's metadata."""
        both = f"{self.left.encoding} {self.right.encoding}"
        return hashlib.sha256(both.encode()).hexdigest()[:16]

    @cached_property
    def digest(self) -> str:
        """ "sha256:..." of both manifests."""
        both = f"{self.left.digest} {self.right.digest}"
        return "sha256:" + hashlib.sha256(both.encode()).hexdigest()


Subject = Manifest | MatrixPair
"""What a run multiplies: an encoded matrix (by x), or two of them by each other."""


def load_subject(bucket: Bucket, spec: RunSpec) -> Subject:
    """The manifest, or the pair of them, that a run is about; raises `MatrixMissing`."""
    left = load_manifest(bucket, spec.matrix)
    if spec.right is None:
        return left
    return MatrixPair(left, load_manifest(bucket, spec.right))
