"""The two stages of making a product that is larger than memory: windows, and parts from pieces.

A window is some rows of every block: the answers' columns for them are read, solved chunk by chunk
where they lie, and written. Where a part of the product needs rows of several windows, windows
leave pieces in the store and the parts are made of those in a second stage. Both are done by number
and may be done twice, by anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore import decode_keys
from blockstore.arrays import byte_view, encode_array, npy_header
from blockstore.bucket import Bucket
from coordinator.answers import column_chunks
from coordinator.check import Check
from coordinator.cut import PART_BYTES, Cut
from coordinator.layout import Layout
from coordinator.stored_answers import READERS, StoredAnswer, read_columns
from coordinator.targets import WRITERS, Target

__all__ = ["Pools", "Solve", "Stages", "WindowMemory", "piece_group", "piece_keys"]

Solve = Callable[[NDArray[Any], NDArray[Any]], Check]


class WindowMemory:
    """The memory of one window at a time, kept for the next: fresh pages cost as much as the bytes
    that are read into them.

    Not for two windows at once, and only while nobody reads into the last one any more.
    """

    def __init__(self) -> None:
        self._bytes = np.empty(0, np.uint8)

    def rows(self, count: int, columns: int, dtype: np.dtype[Any]) -> NDArray[Any]:
        """An array (count, columns) of anything. Memory: the largest that was asked for."""
        size = count * columns * dtype.itemsize
        if self._bytes.size < size:
            self._bytes = np.empty(0, np.uint8)  # the old memory goes before the new one comes
            self._bytes = np.empty(size, np.uint8)
        return self._bytes[:size].view(dtype).reshape(count, columns)


class Pools:
    """Threads that read and threads that write, and the memory of the window they work on."""

    def __init__(
        self,
        readers: int = READERS,
        writers: int = WRITERS,
        memory: WindowMemory | None = None,
    ) -> None:
        self.memory = WindowMemory() if memory is None else memory
        self.readers = ThreadPoolExecutor(readers, thread_name_prefix="read")
        self.writers = ThreadPoolExecutor(writers, thread_name_prefix="write")

    def __enter__(self) -> Pools:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.writers.shutdown(wait=True, cancel_futures=True)
        self.readers.shutdown(wait=True, cancel_futures=True)


@dataclass
class Stages:
    """Makes windows and parts of one product.

    answers, places : the m answers to read, in the order in which `solve` wants them
    solve : (Y, out) with Y (m, columns), `out` (s, columns), which may be Y's own first rows:
        fills `out`, returns what the left-over equations say
    run, decoding : where pieces lie
    """

    bucket: Bucket
    layout: Layout
    cut: Cut
    dtype: np.dtype[Any]
    answers: Sequence[StoredAnswer]
    places: Sequence[int]
    solve: Solve
    target: Target
    run: str
    decoding: str
    pools: Pools

    def window(self, number: int) -> Check:
        """Read, solve and write the rows of a window. Raises `AnswerLost`."""
        first, last = self.cut.windows[number]
        width = self.layout.block_columns
        m, s = len(self.places), self.layout.blocks
        columns = (last - first) * width
        rows = self.pools.memory.rows(max(m, s), columns, self.dtype)
        read_columns(
            self.bucket, self.pools.readers, self.answers, self.places, first * width, rows[:m]
        )
        check = Check()
        for a, b in column_chunks(m, columns):
            check += self.solve(rows[:m, a:b], rows[:s, a:b])
        bands = self.layout.bands(rows[:s])
        if self.cut.direct:
            self._write_parts(number, bands)
        else:
            self._write_pieces(number, bands)
        return check

    def part(self, number: int) -> None:
        """Make a part of the pieces that the windows left, and write it."""
        first, last = self.cut.parts[number]
        rows = np.empty((last - first, self.layout.columns), self.dtype)

        def read(piece: tuple[str, int, int, int]) -> None:
            key, start, a, b = piece
            self.bucket.read_into(byte_view(rows[a - first : b - first]), key, start)

        for _ in self.pools.readers.map(read, self._pieces_of(first, last)):
            pass
        self.target.write(number, rows)

    def _write_parts(self, number: int, bands: NDArray[Any]) -> None:
        height, (top, _) = self.layout.block_rows, self.cut.windows[number]
        one = len(self.cut.windows) == 1
        whole = bands.reshape(-1, self.layout.columns) if one else None

        def write(part: int) -> None:
            first, last = self.cut.parts[part]
            if whole is not None:
                self.target.write(part, whole[first:last])
            else:
                block, row = divmod(first, height)
                self.target.write(part, bands[block, row - top : row - top + last - first])

        for _ in self.pools.writers.map(write, self.cut.parts_of(number, height)):
            pass

    def _write_pieces(self, number: int, bands: NDArray[Any]) -> None:
        group = piece_group(self.layout, self.cut, number, self.dtype)

        def write(index: int) -> None:
            body = encode_array(bands[index * group : (index + 1) * group])
            self.bucket.put(decode_keys.piece_key(self.run, self.decoding, number, index), body)

        for _ in self.pools.writers.map(write, range(-(-self.layout.down // group))):
            pass

    def _pieces_of(self, first: int, last: int) -> list[tuple[str, int, int, int]]:
        """(key, byte, row, row) of the pieces that hold the product's rows `first` to `last`."""
        height, row_bytes = self.layout.block_rows, self.layout.columns * self.dtype.itemsize
        found = []
        for block in range(first // height, -(-last // height)):
            for window, (top, bottom) in enumerate(self.cut.windows):
                a = max(first, block * height + top)
                b = min(last, block * height + bottom)
                if a >= b:
                    continue
                group = piece_group(self.layout, self.cut, window, self.dtype)
                index, inside = divmod(block, group)
                bands = min(group, self.layout.down - index * group)
                shape = (bands, bottom - top, self.layout.columns)
                start = len(npy_header(self.dtype, shape))
                start += (inside * (bottom - top) + a - block * height - top) * row_bytes
                found.append(
                    (decode_keys.piece_key(self.run, self.decoding, window, index), start, a, b)
                )
        return found


def piece_keys(
    layout: Layout, cut: Cut, dtype: np.dtype[Any], run: str, decoding: str
) -> list[str]:
    """The keys of all pieces; none where parts are written at once."""
    if cut.direct:
        return []
    return [
        decode_keys.piece_key(run, decoding, window, group)
        for window in range(len(cut.windows))
        for group in range(-(-layout.down // piece_group(layout, cut, window, dtype)))
    ]


def piece_group(layout: Layout, cut: Cut, window: int, dtype: np.dtype[Any]) -> int:
    """Bands of a window that share an object."""
    first, last = cut.windows[window]
    return max(1, PART_BYTES // ((last - first) * layout.columns * dtype.itemsize))
