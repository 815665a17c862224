"""What a source is: a real matrix that can be read twice, piece by piece."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.arrays import check_dtype
from blockstore.derived import Derived
from blockstore.errors import ArrayRefused
from encoder.errors import SourceRefused
from encoder.pieces import Piece
from encoder.progress import Listener


class Source(ABC):
    """A real matrix of shape (n, d) that can be read twice, piece by piece.

    Attributes
    ----------
    shape : (n, d)
    dtype : dtype of the entries, in the source's byte order
    order : "C" if stored row by row, "F" if column by column
    description : where it came from, for the manifest
    parallel_reads : how many reads at a time make sense
    library_bytes : memory that reading it takes for as long as it is open, pieces not counted
    companions : small files that belong to the rows (labels, names), stored beside the blocks
    notes : what a person should know about it, one sentence each
    looks : whether `look` wants to see the first pass, which is slower then
    derived : from which matrix this one is made, after the first pass; None for one as it is given
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    order: str
    description: str
    parallel_reads: int = 1
    library_bytes: int = 0

    @property
    def companions(self) -> Mapping[str, bytes]:
        """Name -> content; part of the source's digest."""
        return {}

    @property
    def notes(self) -> Sequence[str]:
        """Nothing to say."""
        return ()

    def prepare(  # noqa: B027 (most sources can be read as they are)
        self, memory: int, folder: str | None, progress: Listener | None = None
    ) -> None:
        """Make pieces readable, and the shape final; again does nothing.

        A source whose values must be decoded is decoded here, once, into a spool file in `folder`,
        within `memory` bytes. Raises `SourceRefused`, `MemoryTooSmall`, `SpoolTooSmall`.
        """

    derived: Derived | None = None
    looks: bool = False

    @abstractmethod
    def read_piece(self, piece: Piece) -> NDArray[Any]:
        """The entries of a piece, shape (lines, entries of a line): rows by columns in C order,
        columns by rows in Fortran order."""

    @abstractmethod
    def check_unchanged(self) -> None:
        """Raise `SourceChanged` if the source is no longer what was opened."""

    def look(self, piece: Piece, canonical: NDArray[Any]) -> None:  # noqa: B027
        """If `looks`: shown every piece of the first pass, of whole lines where they fit, in order
        (`encoder.ordered_scan`)."""

    def hashed(self, leaves: Sequence[bytes]) -> None:  # noqa: B027
        """Told the leaves of its digest (`encoder.digest`) when the first pass is over."""

    def close(self) -> None:  # noqa: B027 (only some sources hold something open)
        """Release what the source holds; again does nothing."""

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
