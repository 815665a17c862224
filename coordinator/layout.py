"""Where the decoded blocks lie in the product."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from blockstore.documents import Fields
from blockstore.manifest import Manifest
from blockstore.pairs import MatrixPair

__all__ = ["Layout"]


@dataclass(frozen=True)
class Layout:
    """The decoded (s, L) array as a grid of `down` x `across` blocks of the product.

    Row i * across + j of the decoded array is block (i, j), shape (block_rows, block_columns) in C
    order, so that s = down * across and L = block_rows * block_columns. It stands at row
    i * block_rows and column j * block_columns of the product of `shape` (rows,) or (rows,
    columns); what lies beyond that is padding. A x has across = 1 and block_columns = k; a matrix
    product with both factors coded has across = s2.
    """

    shape: tuple[int, ...]
    down: int
    across: int
    block_rows: int
    block_columns: int

    @classmethod
    def of(cls, manifest: Manifest, x_shape: tuple[int, ...]) -> Layout:
        """The layout of A x for an encoded A and x of shape (d,) or (d, k)."""
        k = math.prod(x_shape[1:])
        shape = (manifest.rows, *x_shape[1:])
        return cls(shape, manifest.data_blocks, 1, manifest.block_rows, k)

    @classmethod
    def of_pair(cls, pair: MatrixPair) -> Layout:
        """The layout of A B for two encoded factors."""
        (s1, s2), (left, right) = pair.data_grid, (pair.left, pair.right)
        return cls(pair.shape, s1, s2, left.block_rows, right.block_rows)

    @property
    def blocks(self) -> int:
        """s, the number of data blocks."""
        return self.down * self.across

    @property
    def length(self) -> int:
        """L, the entries of a block."""
        return self.block_rows * self.block_columns

    @property
    def rows(self) -> int:
        """Rows of the product."""
        return self.shape[0]

    @property
    def columns(self) -> int:
        """Columns of the product, 1 for a vector."""
        return math.prod(self.shape[1:])

    def bands(self, decoded: NDArray[Any]) -> NDArray[Any]:
        """(s, R block_columns), some rows of every block -> (down, R, columns): for each row of the
        grid the same R rows of the product, one below the other. A view where across = 1."""
        rows = decoded.shape[1] // self.block_columns
        if self.across == 1:
            return decoded.reshape(self.down, rows, self.block_columns)[:, :, : self.columns]
        grid = decoded.reshape(self.down, self.across, rows, self.block_columns)
        wide = grid.transpose(0, 2, 1, 3).reshape(self.down, rows, -1)
        return wide[:, :, : self.columns]

    def assemble(self, decoded: NDArray[Any]) -> NDArray[Any]:
        """(s, L) -> the product, without the padding; a view where across = 1."""
        whole = self.bands(decoded).reshape(-1, self.columns)
        return whole[: self.rows].reshape(self.shape)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "shape": list(self.shape),
            "down": self.down,
            "across": self.across,
            "block_rows": self.block_rows,
            "block_columns": self.block_columns,
        }

    @classmethod
    def from_fields(cls, fields: Fields) -> Layout:
        """Read back what `to_json` gave, with the errors of `fields`."""
        return cls(
            fields.integers("shape", low=1),
            *(fields.integer(n, low=1) for n in ("down", "across", "block_rows", "block_columns")),
        )
