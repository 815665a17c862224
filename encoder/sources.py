"""Where a matrix comes from: an .npy file, an .npy object in S3, or an array in memory.

Files and objects are read by bounded reads rather than mapped: the pages of a mapped file count in
the process's memory.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.arrays import check_dtype
from blockstore.errors import ArrayRefused
from encoder.errors import SourceRefused
from encoder.pieces import Piece

S3_SCHEME = "s3://"


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


def open_source(source: str | os.PathLike[str] | NDArray[Any], client: Any = None) -> Source:
    """Open a path to an .npy file, an "s3://bucket/key" URL of one, or an array.

    `client` is the S3 client for URLs. Raises `SourceRefused` for anything but a non-empty real
    two-dimensional array: pickles (never loaded), archives, objects, text, dates, complex numbers,
    masked arrays, and files shorter or longer than their header says.
    """
    from encoder.stored import FileSource, ObjectSource

    if isinstance(source, np.ndarray):
        return ArraySource(source)
    if isinstance(source, str) and source.startswith(S3_SCHEME):
        return ObjectSource(source, client)
    if isinstance(source, str | os.PathLike):
        return FileSource(os.fspath(source))
    raise SourceRefused(
        f"the source must be an array, a path or an s3:// URL, got {type(source).__name__}; "
        "convert it with numpy.asarray"
    )


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


class ArraySource(Source):
    """An array in memory, any strides. The caller must not write to it while it is encoded."""

    def __init__(self, array: NDArray[Any]) -> None:
        if isinstance(array, np.ma.MaskedArray):
            raise SourceRefused(
                "array: masked entries have no value to multiply; use .filled(value) first"
            )
        self.shape = check_matrix("array", array.shape, array.dtype)
        self.dtype = array.dtype
        # The order numpy.save would write, so that an array and its saved file are the same source.
        self.order = "F" if array.flags.fnc else "C"
        self.description = "array"
        plain = array.view(np.ndarray)
        self._lines = plain if self.order == "C" else plain.T

    def read_piece(self, piece: Piece) -> NDArray[Any]:
        """A view: nothing is copied."""
        return self._lines[piece.line0 : piece.line1, piece.start : piece.stop]

    def check_unchanged(self) -> None:
        """Arrays have no version to look at: nothing is checked."""
