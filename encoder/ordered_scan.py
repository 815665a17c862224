"""Pass 1 with somebody looking on: pieces of whole lines, in order, the next ones being read."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.arrays import byte_view
from encoder.digest import LEAF_BYTES, source_digest
from encoder.pieces import Piece, pieces
from encoder.scan import Scan, first_bad, not_finite
from encoder.sources.source import Source

Look = Callable[[Piece, NDArray[Any]], None]


class LeafHasher:
    """The leaves of a digest from bytes that come in order, in any portions."""

    def __init__(self) -> None:
        self._leaves: list[bytes] = []
        self._leaf = hashlib.sha256()
        self._room = LEAF_BYTES

    def update(self, view: memoryview) -> None:
        """Take in more bytes."""
        while view:
            part, view = view[: self._room], view[self._room :]
            self._leaf.update(part)
            self._room -= len(part)
            if self._room == 0:
                self._leaves.append(self._leaf.digest())
                self._leaf = hashlib.sha256()
                self._room = LEAF_BYTES

    def leaves(self) -> list[bytes]:
        """The digests of all leaves, the last one as short as it is."""
        return [*self._leaves, *([self._leaf.digest()] if self._room < LEAF_BYTES else [])]


def scan_in_order(
    source: Source, piece_bytes: int, count: Callable[[int], None], look: Look
) -> Scan:
    """`encoder.scan.scan_source`, with every piece that is finite shown to `look`, in little
    endian. Memory: `source.parallel_reads` + 2 pieces."""
    hasher = LeafHasher()
    low: Any = None
    high: Any = None
    bad: tuple[int, int] | None = None
    for piece, entries in _read_ahead(source, piece_bytes):
        least, most = entries.min(), entries.max()
        if not (np.isfinite(least) and np.isfinite(most)):
            found = first_bad(source, piece, entries)
            bad = found if bad is None else min(bad, found)
            if source.order == "C":
                break  # in Fortran order a later column may have an earlier row
        low = least if low is None else min(low, least)
        high = most if high is None else max(high, most)
        canonical = np.ascontiguousarray(entries, entries.dtype.newbyteorder("<"))
        hasher.update(byte_view(canonical))
        if bad is None:
            look(piece, canonical)
        count(canonical.nbytes)
    if bad is not None:
        raise not_finite(source, bad)
    leaves = hasher.leaves()
    source.hashed(leaves)
    digest = source_digest(source.shape, source.dtype, source.order, leaves, source.companions)
    return Scan(low.item(), high.item(), digest)


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
