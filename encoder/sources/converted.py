"""Sources whose values must be decoded first: images, Zarr arrays, Parquet columns.

They are decoded once, into a spool file, which both passes of the encoder then read like an .npy
file. Decoding again for every piece would decode most of it many times over: a tile of all blocks
takes rows from s places of the matrix, and neither a compressed chunk nor a row group can be read
in part. It also makes the two passes see the same values, whatever happens to the original.
"""

from __future__ import annotations

import shutil
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.arrays import byte_view
from blockstore.tiling import RESERVE_BYTES
from encoder.errors import MemoryTooSmall, SpoolTooSmall
from encoder.layout import DISK_MARGIN
from encoder.pieces import Piece
from encoder.progress import Counter, Listener
from encoder.sources.source import Source
from encoder.spool import SpoolFile

PHASE = "convert"
LEAST_WORKING = 16 << 20  # bytes in which a conversion can be expected to work


class RowSpool:
    """The decoded matrix on disk, in C order."""

    def __init__(self, folder: str, rows: int, columns: int, dtype: np.dtype[Any]) -> None:
        self._row_bytes = columns * dtype.itemsize
        self._itemsize = dtype.itemsize
        self._file = SpoolFile(folder, rows * self._row_bytes)
        self.close = self._file.close

    def write(self, block: NDArray[Any], row: int, column: int = 0) -> None:
        """Write a C-contiguous block whose corner is at (row, column)."""
        place = row * self._row_bytes + column * self._itemsize
        if block[0].nbytes == self._row_bytes:
            self._file.write(byte_view(block), place)
            return
        for i, line in enumerate(block):
            self._file.write(byte_view(line), place + i * self._row_bytes)

    def read(self, block: NDArray[Any], row: int, column: int) -> None:
        """Fill a C-contiguous block whose corner is at (row, column)."""
        place = row * self._row_bytes + column * self._itemsize
        if block[0].nbytes == self._row_bytes:
            self._file.read_into(byte_view(block), place)
            return
        for i, line in enumerate(block):
            self._file.read_into(byte_view(line), place + i * self._row_bytes)


class ConvertedSource(Source):
    """A source that `convert` writes into a spool file. Subclasses set shape, dtype (little
    endian), description and library_bytes before."""

    order = "C"
    _spool: RowSpool | None = None

    @abstractmethod
    def convert(self, spool: RowSpool, memory: int, count: Counter) -> None:
        """Decode everything into `spool` within `memory` bytes; `count` is told of the bytes.

        May lower the number of rows in `shape`. Raises `SourceRefused`, `SourceChanged`,
        `MemoryTooSmall`.
        """

    def prepare(self, memory: int, folder: str | None, progress: Listener | None = None) -> None:
        """Decode once; again does nothing."""
        if self._spool is not None:
            return
        rows, columns = self.shape
        total = rows * columns * self.dtype.itemsize
        if folder is None:
            raise SpoolTooSmall(
                f"{self.description}: it is decoded into a spool file of {total:,} bytes first: "
                "allow a spool folder"
            )
        free = shutil.disk_usage(folder).free
        if free < total + DISK_MARGIN:
            raise SpoolTooSmall(
                f"{self.description}: it is decoded into a spool file first, which needs "
                f"{total + DISK_MARGIN:,} bytes in {folder}, and {free:,} are free: choose another "
                "folder (TMPDIR)"
            )
        working = memory - RESERVE_BYTES - self.library_bytes
        if working < LEAST_WORKING:
            raise too_small(self, LEAST_WORKING)
        spool = RowSpool(folder, rows, columns, self.dtype)
        try:
            self.convert(spool, working, Counter(PHASE, total, progress))
        except BaseException:
            spool.close()
            raise
        self._spool = spool

    def read_piece(self, piece: Piece) -> NDArray[Any]:
        """Read a piece from the spool file."""
        if self._spool is None:
            raise RuntimeError("prepare comes before read_piece")
        out = np.empty((piece.line1 - piece.line0, piece.stop - piece.start), self.dtype)
        if out.size:
            self._spool.read(out, piece.line0, piece.start)
        return out

    def check_unchanged(self) -> None:
        """Nothing to do: the spool file is ours alone."""

    def close(self) -> None:
        """Free the spool file."""
        if self._spool is not None:
            self._spool.close()


def too_small(source: Source, working: int) -> MemoryTooSmall:
    """The refusal of a memory limit in which `working` bytes for the conversion do not fit."""
    return MemoryTooSmall(
        f"{source.description}: decoding it takes memory of at least "
        f"{RESERVE_BYTES + source.library_bytes + working:,} bytes"
    )


def missing_library(what: str, package: str, extra: str) -> str:
    """What to do when an optional library is not installed."""
    return (
        f"{what}: reading it needs {package}, which is not installed: "
        f"pip install 'polarlambda[{extra}]'"
    )
