"""Pass 1: read the source once, in order. Is every entry finite, what is the range, what digest?"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.arrays import byte_view, npy_header
from encoder.errors import SourceRefused
from encoder.pieces import Piece, pieces
from encoder.sources import Source


@dataclass(frozen=True)
class Scan:
    """What pass 1 found.

    low, high : least and greatest entry, ints for integer and bool sources; digest : "sha256:..."
    of dtype, shape, order and entries (little endian, in the source's own order, so that one
    sequential read computes it: the same matrix in C and in Fortran order has two digests).
    """

    low: int | float
    high: int | float
    digest: str


def scan_source(
    source: Source,
    piece_bytes: int,
    count: Callable[[int], None],
    look: Callable[[Piece, NDArray[Any]], None] | None = None,
) -> Scan:
    """Read all of `source` in pieces of at most `piece_bytes`; `count` is told of the bytes read.

    `look`, by default the source's own, is shown every piece that is finite, in order and in little
    endian.

    Raises `SourceRefused`, naming the first row (and its first column) that holds NaN or Inf.
    Memory: `source.parallel_reads` + 2 pieces.
    """
    digest = hashlib.sha256(npy_header(source.dtype, source.shape, fortran=source.order == "F"))
    low: Any = None
    high: Any = None
    bad: tuple[int, int] | None = None
    shown = look or source.look
    for piece, entries in _read_ahead(source, piece_bytes):
        least, most = entries.min(), entries.max()
        if not (np.isfinite(least) and np.isfinite(most)):
            found = _first_bad(source, piece, entries)
            bad = found if bad is None else min(bad, found)
            if source.order == "C":
                break  # in Fortran order a later column may have an earlier row
        low = least if low is None else min(low, least)
        high = most if high is None else max(high, most)
        canonical = np.ascontiguousarray(entries, entries.dtype.newbyteorder("<"))
        digest.update(byte_view(canonical))
        shown(piece, canonical)
        count(canonical.nbytes)
    if bad is not None:
        value = source.read(bad[0], bad[0] + 1, bad[1], bad[1] + 1)[0, 0]
        raise SourceRefused(
            f"{source.description}: every entry must be finite, row {bad[0]} has {value} in "
            f"column {bad[1]} (counted from 0; no earlier row has one); replace it or drop the row"
        )
    return Scan(low.item(), high.item(), "sha256:" + digest.hexdigest())


def _read_ahead(source: Source, piece_bytes: int) -> Iterator[tuple[Piece, NDArray[Any]]]:
    """The pieces in order, the next `parallel_reads` of them being read meanwhile."""
    entries = max(1, piece_bytes // source.dtype.itemsize)
    waiting: deque[tuple[Piece, Future[NDArray[Any]]]] = deque()
    with ThreadPoolExecutor(source.parallel_reads, "polarlambda-scan") as pool:
        try:
            for piece in pieces(source.lines, source.length, entries):
                waiting.append((piece, pool.submit(source.read_piece, piece)))
                if len(waiting) > source.parallel_reads:
                    first, future = waiting.popleft()
                    yield first, future.result()
            while waiting:
                first, future = waiting.popleft()
                yield first, future.result()
        finally:
            for _, future in waiting:
                future.cancel()


def _first_bad(source: Source, piece: Piece, entries: NDArray[Any]) -> tuple[int, int]:
    """(row, column) of the first entry of a piece, by rows, that is not finite."""
    lines, places = np.nonzero(~np.isfinite(entries))
    if source.order == "C":
        return piece.line0 + int(lines[0]), piece.start + int(places[0])
    row = int(places.min())
    return piece.start + row, piece.line0 + int(lines[places == row].min())
