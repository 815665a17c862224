"""Data blocks -> the rows of the transform's buffer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.tiling import TileSpan
from encoder.pieces import Piece, pieces
from encoder.sources.source import Source


class BlockReader:
    """Reads the same chunk of all s data blocks of a source.

    Block k holds rows k b to (k + 1) b; rows beyond the last are zero. `slots` (s,) are the
    buffer's rows for the blocks, `piece_bytes` bounds a single read.
    """

    def __init__(
        self, source: Source, block_rows: int, slots: NDArray[np.intp], piece_bytes: int
    ) -> None:
        self._source = source
        self._block_rows = block_rows
        self._slots = slots
        self._entries = max(1, piece_bytes // source.dtype.itemsize)
        self._pool = (
            ThreadPoolExecutor(source.parallel_reads, "polarlambda-read")
            if source.parallel_reads > 1
            else None
        )

    def close(self) -> None:
        """Stop the reading threads."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def fill(self, buffer: NDArray[Any], span: TileSpan, chunk: Piece) -> None:
        """Set the whole (N, chunk.size) buffer: block k at row slots[k], zeros elsewhere.

        `chunk` counts lines and entries from the tile's corner: rows and columns for a source in
        C order, columns and rows in Fortran order.
        """
        frozen = np.ones(len(buffer), bool)
        frozen[self._slots] = False
        buffer[frozen] = 0
        height = chunk.line1 - chunk.line0
        rooms = buffer.reshape(len(buffer), height, chunk.stop - chunk.start)
        jobs = self._by_rows if self._source.order == "C" else self._by_columns
        if self._pool is None:
            for job in jobs(rooms, span, chunk):
                job()
        else:
            for _ in self._pool.map(lambda job: job(), jobs(rooms, span, chunk)):
                pass

    def _by_rows(
        self, rooms: NDArray[Any], span: TileSpan, chunk: Piece
    ) -> Iterator[Callable[[], None]]:
        rows = self._source.shape[0]
        row0, row1 = span.row0 + chunk.line0, span.row0 + chunk.line1
        col0 = span.col0 + chunk.start
        for k, slot in enumerate(self._slots):
            first = min(k * self._block_rows + row0, rows)
            height = min(k * self._block_rows + row1, rows) - first
            rooms[slot, height:] = 0
            for part in pieces(height, chunk.stop - chunk.start, self._entries):
                yield self._copy(rooms[slot], part, first, col0)

    def _copy(self, room: NDArray[Any], part: Piece, line: int, entry: int) -> Callable[[], None]:
        def job() -> None:
            room[part.line0 : part.line1, part.start : part.stop] = self._source.read_piece(
                Piece(line + part.line0, line + part.line1, entry + part.start, entry + part.stop)
            )

        return job

    def _by_columns(
        self, rooms: NDArray[Any], span: TileSpan, chunk: Piece
    ) -> Iterator[Callable[[], None]]:
        rows = self._source.shape[0]
        col0 = span.col0 + chunk.line0
        row0, row1 = span.row0 + chunk.start, span.row0 + chunk.stop
        width = chunk.line1 - chunk.line0
        whole = (row0, row1) == (0, self._block_rows)
        if whole and rows <= self._entries:
            # The blocks of a column follow each other: long reads, each of whole columns.
            for part in pieces(width, rows, self._entries):
                yield self._scatter(rooms, part, col0)
            return
        for k, slot in enumerate(self._slots):
            first = min(k * self._block_rows + row0, rows)
            height = min(k * self._block_rows + row1, rows) - first
            rooms[slot, :, height:] = 0
            for part in pieces(width, height, self._entries) if height else ():
                yield self._copy(rooms[slot], part, col0, first)

    def _scatter(self, rooms: NDArray[Any], part: Piece, col0: int) -> Callable[[], None]:
        def job() -> None:
            b, slots = self._block_rows, self._slots
            columns = self._source.read_piece(
                Piece(col0 + part.line0, col0 + part.line1, part.start, part.stop)
            )
            count, rows = columns.shape
            full, rest = divmod(rows, b)
            room = rooms[:, part.line0 : part.line1]
            room[slots[:full]] = columns[:, : full * b].reshape(count, full, b).swapaxes(0, 1)
            room[slots[full:]] = 0
            if rest:
                room[slots[full], :, :rest] = columns[:, full * b :]

        return job
