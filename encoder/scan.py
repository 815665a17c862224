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
from encoder.processors import threads
from encoder.sources.source import Source


@dataclass(frozen=True)
class PartScan:
    """What pass 1 found in some leaves: least and greatest entry (None with `bad`), the digests of
    the leaves in order, and (row, column) of the first entry that is not finite."""

    low: Any
    high: Any
    leaves: tuple[bytes, ...]
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
    return max(source.parallel_reads, threads())


def scan_source(source: Source, piece_bytes: int, count: Callable[[int], None]) -> Scan:
    """Read all of `source` in pieces of at most `piece_bytes`; `count` is told of the bytes read.

    Raises `SourceRefused`, naming the first row (and its first column) that holds NaN or Inf.
    Memory: `scan_threads(source)` + 2 pieces.
    """
    leaves = leaf_count(source.shape, source.dtype)
    return combine(source, scan_leaves(source, 0, leaves, piece_bytes, count))


def combine(source: Source, parts: Iterable[PartScan]) -> Scan:
    """The scan of a source from those of its parts, in order; raises as `scan_source` does."""
    whole = merge(source.order, parts)
    if whole.bad is not None:
        raise not_finite(source, whole.bad)
    source.hashed(whole.leaves)
    leaves, companions = whole.leaves, source.companions
    digest = source_digest(source.shape, source.dtype, source.order, leaves, companions)
    return Scan(whole.low, whole.high, digest)


def merge(order: str, parts: Iterable[PartScan]) -> PartScan:
    """One scan of consecutive parts of a source stored in `order`."""
    low: Any = None
    high: Any = None
    bad: tuple[int, int] | None = None
    leaves: list[bytes] = []
    for part in parts:
        if part.bad is not None:
            bad = part.bad if bad is None else min(bad, part.bad)
            if order == "C":
                break  # in Fortran order a later column may have an earlier row
            continue
        low = part.low if low is None else min(low, part.low)
        high = part.high if high is None else max(high, part.high)
        leaves.extend(part.leaves)
    return PartScan(low, high, tuple(leaves), bad)


def not_finite(source: Source, bad: tuple[int, int]) -> SourceRefused:
    """The refusal of an entry, given by row and column."""
    value = source.read(bad[0], bad[0] + 1, bad[1], bad[1] + 1)[0, 0]
    return SourceRefused(
        f"{source.description}: every entry must be finite, row {bad[0]} has {value} in "
        f"column {bad[1]} (counted from 0; no earlier row has one); replace it or drop the row"
    )


def scan_leaves(
    source: Source, first: int, stop: int, piece_bytes: int, count: Callable[[int], None]
) -> Iterator[PartScan]:
    """The scans of leaves `first` to `stop`, the end excluded, in order, on all processors."""
    at_once = scan_threads(source)
    waiting: deque[Future[PartScan]] = deque()
    with ThreadPoolExecutor(at_once, "polarlambda-scan") as pool:
        try:
            for leaf in range(first, stop):
                waiting.append(pool.submit(_scan_leaf, source, leaf, piece_bytes, count))
                if len(waiting) > 2 * at_once:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def _scan_leaf(
    source: Source, leaf: int, piece_bytes: int, count: Callable[[int], None]
) -> PartScan:
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
        return PartScan(None, None, (), bad)
    return PartScan(low.item(), high.item(), (digest.digest(),))


def first_bad(source: Source, piece: Piece, entries: NDArray[Any]) -> tuple[int, int]:
    """(row, column) of the first entry of a piece, by rows, that is not finite."""
    lines, places = np.nonzero(~np.isfinite(entries))
    if source.order == "C":
        return piece.line0 + int(lines[0]), piece.start + int(places[0])
    row = int(places.min())
    return piece.start + row, piece.line0 + int(lines[places == row].min())
