"""Matrices made from a source while it is encoded: its transpose, and its Gram matrix.

The manifest says of which source, by digest, so that a training can check that a matrix and its
transpose belong together.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.arrays import byte_view
from blockstore.derived import KINDS, Derived
from encoder.columns import ColumnScan
from encoder.digest import source_digest
from encoder.errors import MemoryTooSmall, SourceRefused, SpoolTooSmall
from encoder.ordered_scan import scan_in_order
from encoder.pieces import Piece
from encoder.progress import Counter, Listener
from encoder.sources import Source

CHUNK_BYTES = 4 << 20  # of rows multiplied at a time: fixed, so that sums do not depend on `memory`

__all__ = ["GramSource", "TransposeSource", "derive_source", "derived_shape"]


def derived_shape(
    shape: tuple[int, int], dtype: np.dtype[Any], derive: str | None
) -> tuple[tuple[int, int], np.dtype[Any]]:
    """Shape and dtype of what `derive` makes of a matrix; raises `SourceRefused`."""
    if derive is None:
        return shape, dtype
    if derive not in KINDS:
        raise SourceRefused(f"derive must be one of {', '.join(KINDS)}, got {derive!r}")
    if derive == "transpose":
        return (shape[1], shape[0]), dtype
    return (shape[1], shape[1]), np.dtype("<f8")


def derive_source(
    source: Source,
    derive: str | None,
    memory: int,
    folder: str | None,
    progress: Listener | None = None,
) -> Source:
    """The source itself, or its transpose or Gram matrix, which owns and closes it.

    memory, folder : bytes to use, and where the spool may lie (None: nowhere); progress : told of
    the passes of the Gram matrix, in the phase "derive". Raises `SourceRefused`, `MemoryTooSmall`,
    `SpoolTooSmall`, and closes the source then.
    """
    try:
        derived_shape(source.shape, source.dtype, derive)
        if derive is None:
            return source
        if derive == "transpose":
            return TransposeSource(source)
        return GramSource(source, memory, folder, progress)
    except BaseException:
        source.close()
        raise


class TransposeSource(Source):
    """X^T (d, n) of a source X (n, d): the same bytes, read as columns instead of rows."""

    looks = True

    def __init__(self, source: Source) -> None:
        self._source = source
        self.shape = source.shape[::-1]
        self.dtype = source.dtype
        self.order = "F" if source.order == "C" else "C"
        self.description = f"transpose of {source.description}"
        self.parallel_reads = source.parallel_reads
        self.library_bytes = source.library_bytes
        self._columns = ColumnScan(source.shape, source.order)
        self._digest = ""

    def read_piece(self, piece: Piece) -> NDArray[Any]:
        """A piece of X: what is a line of one is a line of the other."""
        return self._source.read_piece(piece)

    def look(self, piece: Piece, canonical: NDArray[Any]) -> None:
        """Look at the columns of X."""
        self._columns.add(piece, canonical)

    def hashed(self, leaves: Sequence[bytes]) -> None:
        """The entries are those of X, in the same order: so are the leaves."""
        x = self._source
        self._digest = source_digest(x.shape, x.dtype, x.order, leaves, x.companions)

    @property
    def derived(self) -> Derived:
        """What was made, known after the first pass."""
        return Derived(
            "transpose",
            self._digest,
            self.shape[1],
            self._columns.constant,
            self._columns.dependent,
        )

    def check_unchanged(self) -> None:
        """As for X."""
        self._source.check_unchanged()

    def close(self) -> None:
        """Close X."""
        self._source.close()


class GramSource(Source):
    """W = X^T X (d, d) float64 of a source X (n, d), computed when it is made, then read.

    W is summed up in panels of rows that fit a quarter of the memory, with one pass over X for each
    panel and one for its digest; it waits in a file without a name. Raises `SourceRefused` for a
    sum that overflows and for X that is not finite.
    """

    order = "C"
    dtype = np.dtype("<f8")

    def __init__(
        self, source: Source, memory: int, folder: str | None, progress: Listener | None
    ) -> None:
        self._source = source
        n, d = source.shape
        self.shape = (d, d)
        self.description = f"Gram matrix of {source.description}"
        self.library_bytes = source.library_bytes
        height = max(1, min(d, memory // 4 // (8 * d)))
        passes = 1 + -(-d // height)
        count = Counter("derive", passes * n * d * source.dtype.itemsize, progress).add
        columns = ColumnScan(source.shape, source.order)
        scan = scan_in_order(source, CHUNK_BYTES, count, columns.add)
        source.check_unchanged()
        self._file = _spool(folder, d)
        try:
            self._sum_up(height, count)
            source.check_unchanged()
        except BaseException:
            self._file.close()
            raise
        self.derived = Derived("gram", scan.digest, n, columns.constant, columns.dependent)

    def _sum_up(self, height: int, count: Callable[[int], None]) -> None:
        source = self._source
        n, d = source.shape
        step = max(1, CHUNK_BYTES // (8 * d))
        for first in range(0, d, height):
            last = min(first + height, d)
            panel = np.zeros((last - first, d))
            for row in range(0, n, step):
                end = min(row + step, n)
                chunk = source.read(row, end, 0, d).astype(np.float64)
                with np.errstate(over="ignore", invalid="ignore"):
                    panel += chunk[:, first:last].T @ chunk
                count((end - row) * d * source.dtype.itemsize)
            if not np.isfinite(panel).all():
                raise SourceRefused(
                    f"{source.description}: the sums of X^T X overflow float64; scale the columns"
                )
            self._file.seek(first * d * 8)
            self._file.write(byte_view(panel))
            self._file.flush()

    def read_piece(self, piece: Piece) -> NDArray[Any]:
        """A piece of W, from the file."""
        d = self.shape[1]
        out = np.empty((piece.line1 - piece.line0, piece.stop - piece.start))
        for line in range(piece.line0, piece.line1):
            view = byte_view(out[line - piece.line0])
            place = (line * d + piece.start) * 8
            while view:
                got = os.preadv(self._file.fileno(), [view], place)
                if got == 0:
                    raise SourceRefused("the file of the Gram matrix became shorter")
                view, place = view[got:], place + got
        return out

    def check_unchanged(self) -> None:
        """W is a file of our own: nothing else writes to it."""

    def close(self) -> None:
        """Drop W and close X."""
        self._file.close()
        self._source.close()


def _spool(folder: str | None, d: int) -> Any:
    if folder is None:
        raise MemoryTooSmall("a Gram matrix needs a disk spool: allow one")
    try:
        return tempfile.TemporaryFile(dir=folder, prefix="polarlambda-")
    except OSError as exc:
        raise SpoolTooSmall(
            f"no file for a Gram matrix of {8 * d * d:,} bytes can be made in {folder}: "
            f"{exc.strerror}; choose another folder"
        ) from exc
