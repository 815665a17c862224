"""Data blocks -> the rows of the transform's buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from blockstore.tiling import TileSpan
from encoder.pieces import Piece, joined, pieces
from encoder.processors import threads
from encoder.sources.source import Source

Job = Callable[[], None]


class Room(NamedTuple):
    """A chunk of a tile, counted in lines and entries from the tile's corner, and the (N, lines,
    entries of a line) buffer that it is encoded in."""

    chunk: Piece
    rows: NDArray[Any]


class BlockReader:
    """Reads the same part of all s data blocks of a source.

    Block k holds rows k b to (k + 1) b; rows beyond the last are zero. `slots` (s,) are the
    buffers' rows for the blocks, `piece_bytes` bounds a single read. Reads are as long as the part
    of a tile that is asked for allows, however small the chunks that it is encoded in.
    """

    def __init__(
        self, source: Source, block_rows: int, slots: NDArray[np.intp], piece_bytes: int
    ) -> None:
        self._source = source
        self._block_rows = block_rows
        self._slots = slots
        self._entries = max(1, piece_bytes // source.dtype.itemsize)
        self._pool = ThreadPoolExecutor(max(source.parallel_reads, threads()), "polarlambda-read")

    def close(self) -> None:
        """Stop the reading threads."""
        self._pool.shutdown(cancel_futures=True)

    def fill(self, rooms: Sequence[Room], span: TileSpan) -> None:
        """Set the buffers of consecutive chunks: block k at row slots[k], zeros elsewhere.

        Lines are rows for a source in C order, columns in Fortran order.
        """
        frozen = np.ones(len(rooms[0].rows), bool)
        frozen[self._slots] = False
        self._do(self._blanks(rooms, span, frozen))
        jobs = self._by_rows if self._source.order == "C" else self._by_columns
        self._do(
            job for part in joined([r.chunk for r in rooms], self._length(span))
            for job in jobs(rooms, span, part)
        )  # fmt: skip

    def _do(self, jobs: Iterator[Job]) -> None:
        for _ in self._pool.map(lambda job: job(), jobs):
            pass

    def _length(self, span: TileSpan) -> int:
        return span.shape[1] if self._source.order == "C" else span.shape[0]

    def _blanks(
        self, rooms: Sequence[Room], span: TileSpan, frozen: NDArray[np.bool_]
    ) -> Iterator[Job]:
        """Zero the rows without a block, and those of blocks that reach beyond the matrix."""
        rows = self._source.shape[0]
        ends = (np.arange(len(self._slots)) * self._block_rows) + span.row1
        blank = frozen.copy()
        blank[self._slots[ends > rows]] = True

        def job(buffer: NDArray[Any]) -> Job:
            def zero() -> None:
                buffer[blank] = 0

            return zero

        for room in rooms:
            yield job(room.rows)

    def _rows_of(self, k: int, row0: int, row1: int) -> tuple[int, int]:
        """Block k's rows `row0` to `row1` as (first row of the matrix, how many there are)."""
        rows = self._source.shape[0]
        first = min(k * self._block_rows + row0, rows)
        return first, min(k * self._block_rows + row1, rows) - first

    def _by_rows(self, rooms: Sequence[Room], span: TileSpan, part: Piece) -> Iterator[Job]:
        col0 = span.col0 + part.start
        for k, slot in enumerate(self._slots):
            first, height = self._rows_of(k, span.row0 + part.line0, span.row0 + part.line1)
            for piece in pieces(height, part.stop - part.start, self._entries) if height else ():
                yield self._copy(rooms, slot, piece, part, first, col0)

    def _by_columns(self, rooms: Sequence[Room], span: TileSpan, part: Piece) -> Iterator[Job]:
        rows = self._source.shape[0]
        col0 = span.col0 + part.line0
        row0, row1 = span.row0 + part.start, span.row0 + part.stop
        width = part.line1 - part.line0
        if (row0, row1) == (0, self._block_rows) and rows <= self._entries:
            # The blocks of a column follow each other: long reads, each of whole columns.
            for piece in pieces(width, rows, self._entries):
                yield self._split(rooms, piece, part.line0, col0)
            return
        for k, slot in enumerate(self._slots):
            first, height = self._rows_of(k, row0, row1)
            for piece in pieces(width, height, self._entries) if height else ():
                yield self._copy(rooms, slot, piece, part, col0, first)

    def _copy(
        self, rooms: Sequence[Room], slot: int, piece: Piece, part: Piece, line: int, entry: int
    ) -> Job:
        """Read a piece, counted from the corner of `part`, which lies at (line, entry) of the
        source."""
        place = Piece(
            part.line0 + piece.line0,
            part.line0 + piece.line1,
            part.start + piece.start,
            part.start + piece.stop,
        )

        def job() -> None:
            values = self._source.read_piece(
                Piece(
                    line + piece.line0, line + piece.line1, entry + piece.start, entry + piece.stop
                )
            )
            _spread(rooms, slot, place, values)

        return job

    def _split(self, rooms: Sequence[Room], piece: Piece, line0: int, col0: int) -> Job:
        """Read whole columns, which hold all blocks one after another."""

        def job() -> None:
            b = self._block_rows
            columns = self._source.read_piece(
                Piece(col0 + piece.line0, col0 + piece.line1, piece.start, piece.stop)
            )
            for k, slot in enumerate(self._slots):
                block = columns[:, k * b : (k + 1) * b]
                place = Piece(line0 + piece.line0, line0 + piece.line1, 0, block.shape[1])
                _spread(rooms, slot, place, block)

        return job


def _spread(rooms: Sequence[Room], slot: int, place: Piece, values: NDArray[Any]) -> None:
    """Copy the values of a piece of the tile to where they belong in the buffers' row `slot`."""
    for chunk, rows in rooms:
        line0, line1 = max(chunk.line0, place.line0), min(chunk.line1, place.line1)
        start, stop = max(chunk.start, place.start), min(chunk.stop, place.stop)
        if line0 < line1 and start < stop:
            rows[
                slot,
                line0 - chunk.line0 : line1 - chunk.line0,
                start - chunk.start : stop - chunk.start,
            ] = values[
                line0 - place.line0 : line1 - place.line0,
                start - place.start : stop - place.start,
            ]
