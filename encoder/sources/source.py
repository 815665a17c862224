"""What a source is: a real matrix that can be read twice, piece by piece."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.arrays import check_dtype
from blockstore.errors import ArrayRefused
from encoder.errors import SourceRefused
from encoder.pieces import Piece


class Source(ABC):
    """A real matrix of shape (n, d) that can be read twice, piece by piece.

    Attributes
    ----------
    shape : (n, d)
    dtype : dtype of the entries, in the source's byte order
    order : "C" if stored row by row, "F" if column by column
    description : where it came from, for the manifest
    parallel_reads : how many reads at a time make sense
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    order: str
    description: str
    parallel_reads: int = 1

    @abstractmethod
    def read_piece(self, piece: Piece) -> NDArray[Any]:
        """The entries of a piece, shape (lines, entries of a line): rows by columns in C order,
        columns by rows in Fortran order."""

    @abstractmethod
    def check_unchanged(self) -> None:
        """Raise `SourceChanged` if the source is no longer what was opened."""

    def close(self) -> None:  # noqa: B027 (only some sources hold something open)
        """Release what the source holds."""

    @property
    def lines(self) -> int:
        """Rows in C order, columns in Fortran order."""
        return self.shape[0] if self.order == "C" else self.shape[1]

    @property
    def length(self) -> int:
        """Entries of a line."""
        return self.shape[1] if self.order == "C" else self.shape[0]

    def read(self, row0: int, row1: int, col0: int, col1: int) -> NDArray[Any]:
        """Rows `row0` to `row1`, columns `col0` to `col1`, the ends excluded."""
        if self.order == "C":
            return self.read_piece(Piece(row0, row1, col0, col1))
        return self.read_piece(Piece(col0, col1, row0, row1)).T

    def __enter__(self) -> Source:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def check_matrix(what: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, int]:
    """Return the shape of an acceptable matrix; raises `SourceRefused` naming `what` it is."""
    try:
        check_dtype(dtype)
    except ArrayRefused as exc:
        raise SourceRefused(f"{what}: {exc}") from exc
    if len(shape) != 2:
        raise SourceRefused(
            f"{what}: must be two-dimensional (rows, columns), its shape is {shape}; "
            "reshape it, for example with .reshape(len(a), -1)"
        )
    if 0 in shape:
        raise SourceRefused(f"{what}: must not be empty, its shape is {shape}")
    return shape[0], shape[1]
