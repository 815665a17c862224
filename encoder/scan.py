"""Pass 1: read the source once. Is every entry finite, what is the range, what digest?"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.arrays import byte_view
from encoder.digest import leaf_count, leaf_span, source_digest
from encoder.errors import SourceRefused
from encoder.pieces import Piece, flat_pieces
from encoder.processors import processors
from encoder.sources.source import Source


@dataclass(frozen=True)
class LeafScan:
    """What pass 1 found in one leaf: least and greatest entry (None with `bad`), digest, and (row,
    column) of its first entry that is not finite."""

    low: Any
    high: Any
    digest: bytes
    bad: tuple[int, int] | None = None


@dataclass(frozen=True)
class Scan:
    """What pass 1 found: least and greatest entry, ints for integer and bool sources, and the
    digest (`encoder.digest`)."""

    low: int | float
    high: int | float
    digest: str


def scan_threads(source: Source) -> int:
    """Leaves read and hashed at a time: hashing takes longer than reading a warm disk."""
    return max(source.parallel_reads, processors())


def scan_source(source: Source, piece_bytes: int, count: Callable[[int], None]) -> Scan:
    """Read all of `source` in pieces of at most `piece_bytes`; `count` is told of the bytes read.

    Raises `SourceRefused`, naming the first row (and its first column) that holds NaN or Inf.
    Memory: `scan_threads(source)` + 2 pieces.
    """
    leaves = leaf_count(source.shape, source.dtype)
    return combine(source, scan_leaves(source, 0, leaves, piece_bytes, count))


def combine(source: Source, leaves: Iterable[LeafScan]) -> Scan:
    """The scan of a source from those of its leaves, in order; raises as `scan_source` does."""
    low: Any = None
    high: Any = None
    bad: tuple[int, int] | None = None
    digests = []
    for leaf in leaves:
        if leaf.bad is not None:
            bad = leaf.bad if bad is None else min(bad, leaf.bad)
            if source.order == "C":
                break  # in Fortran order a later column may have an earlier row
            continue
        low = leaf.low if low is None else min(low, leaf.low)
        high = leaf.high if high is None else max(high, leaf.high)
        digests.append(leaf.digest)
    if bad is not None:
        raise not_finite(source, bad)
    source.hashed(digests)
    digest = source_digest(source.shape, source.dtype, source.order, digests, source.companions)
    return Scan(low, high, digest)


def not_finite(source: Source, bad: tuple[int, int]) -> SourceRefused:
    """The refusal of an entry, given by row and column."""
    value = source.read(bad[0], bad[0] + 1, bad[1], bad[1] + 1)[0, 0]
    return SourceRefused(
        f"{source.description}: every entry must be finite, row {bad[0]} has {value} in "
        f"column {bad[1]} (counted from 0; no earlier row has one); replace it or drop the row"
    )


def scan_leaves(
    source: Source, first: int, stop: int, piece_bytes: int, count: Callable[[int], None]
) -> Iterator[LeafScan]:
    """The scans of leaves `first` to `stop`, the end excluded, in order, on all processors."""
    threads = scan_threads(source)
    waiting: deque[Future[LeafScan]] = deque()
    with ThreadPoolExecutor(threads, "polarlambda-scan") as pool:
        try:
            for leaf in range(first, stop):
                waiting.append(pool.submit(_scan_leaf, source, leaf, piece_bytes, count))
                if len(waiting) > 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _scan_leaf(
    source: Source, leaf: int, piece_bytes: int, count: Callable[[int], None]
) -> LeafScan:
    low: Any = None
    high: Any = None
    bad: tuple[int, int] | None = None
    digest = hashlib.sha256()
    start, stop = leaf_span(leaf, source.shape, source.dtype)
    entries = max(1, piece_bytes // source.dtype.itemsize)
    for piece in flat_pieces(source.length, start, stop, entries):
        values = source.read_piece(piece)
        least, most = values.min(), values.max()
        if not (np.isfinite(least) and np.isfinite(most)):
            found = first_bad(source, piece, values)
            bad = found if bad is None else min(bad, found)
            if source.order == "C":
                break
            continue
        low = least if low is None else min(low, least)
        high = most if high is None else max(high, most)
        canonical = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
        digest.update(byte_view(canonical))
        count(canonical.nbytes)
    if bad is not None:
        return LeafScan(None, None, b"", bad)
    return LeafScan(low.item(), high.item(), digest.digest())


def first_bad(source: Source, piece: Piece, entries: NDArray[Any]) -> tuple[int, int]:
    """(row, column) of the first entry of a piece, by rows, that is not finite."""
    lines, places = np.nonzero(~np.isfinite(entries))
    if source.order == "C":
        return piece.line0 + int(lines[0]), piece.start + int(places[0])
    row = int(places.min())
    return piece.start + row, piece.line0 + int(lines[places == row].min())
