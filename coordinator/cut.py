"""How a product that is larger than memory is cut: into windows to decode, and parts to write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from blockstore.documents import Fields
from blockstore.uploads import LEAST_PART, MOST_PARTS
from coordinator.layout import Layout

__all__ = ["NPY", "ZARR", "Cut", "PartRule", "Span", "cut_product"]

Span = tuple[int, int]
PART_BYTES = 6 << 20  # aimed at; parts have less than twice as much
LEAST_CHUNK = 64 << 10  # of a Zarr array, below which another way is taken


@dataclass(frozen=True)
class PartRule:
    """What may be written at once: `least` bytes but for the last part, at most `most` parts, all
    of the same number of rows if `regular`."""

    least: int
    most: int
    regular: bool


NPY = PartRule(LEAST_PART, MOST_PARTS - 1, False)
ZARR = PartRule(1, 1_000_000, True)


@dataclass(frozen=True)
class Cut:
    """windows: rows of every block that are decoded at a time; parts: rows of the product that are
    written at a time, in order. direct: every part lies in one window; else decoded rows are put
    into the store as pieces first, of which the parts are made then."""

    windows: tuple[Span, ...]
    parts: tuple[Span, ...]
    direct: bool

    def parts_of(self, window: int, block_rows: int) -> list[int]:
        """The parts that lie in a window, when each of them lies in one."""
        if len(self.windows) == 1:
            return list(range(len(self.parts)))
        first, last = self.windows[window]
        return [
            number for number, (row, _) in enumerate(self.parts) if first <= row % block_rows < last
        ]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "windows": [bound for span in self.windows for bound in span],
            "parts": [bound for span in self.parts for bound in span],
            "direct": self.direct,
        }

    @classmethod
    def from_fields(cls, fields: Fields) -> Cut:
        """Read back what `to_json` gave."""
        windows, parts = _pairs(fields.integers("windows")), _pairs(fields.integers("parts"))
        return cls(windows, parts, fields.boolean("direct"))


def cut_product(layout: Layout, itemsize: int, window_rows: int, rule: PartRule) -> Cut:
    """Cut a product of `layout`, of which `window_rows` (at least 1) rows of every block fit into
    memory.

    One window where all of it fits. Else every block's rows of a window are parts by themselves
    where the rule allows it; else decoded rows go through pieces, which costs writing and reading
    the product once more.
    """
    row_bytes = layout.columns * itemsize
    least = max(-(-rule.least // row_bytes), -(-layout.rows // rule.most))
    wanted = max(least, PART_BYTES // row_bytes, 1)
    height = layout.block_rows
    if window_rows >= height:
        return Cut(((0, height),), _whole(layout.rows, wanted, rule), True)
    count = -(-height // window_rows)
    if rule.regular:
        chunk = _divisor(height, min(window_rows, wanted))
        if chunk * row_bytes >= min(LEAST_CHUNK, wanted * row_bytes):
            step = window_rows // chunk * chunk
            windows = tuple((a, min(a + step, height)) for a in range(0, height, step))
            return Cut(windows, _whole(layout.rows, chunk, rule), True)
    elif height // count >= least and layout.down * count <= rule.most:
        windows = even(height, count)
        most = rule.most // (layout.down * count)
        each = max(1, min(height // count // wanted, most))
        parts = _parts_of_blocks(layout, windows, each)
        return Cut(windows, parts, True)
    return Cut(even(height, count), _whole(layout.rows, wanted, rule), False)


def even(total: int, count: int) -> tuple[Span, ...]:
    """`total` rows in `count` spans whose sizes differ by one at most."""
    bounds = [total * i // count for i in range(count + 1)]
    return tuple(pairwise(bounds))


def _whole(rows: int, wanted: int, rule: PartRule) -> tuple[Span, ...]:
    if rule.regular:
        return tuple((a, min(a + wanted, rows)) for a in range(0, rows, wanted))
    return even(rows, max(1, rows // wanted))


def _parts_of_blocks(layout: Layout, windows: Sequence[Span], each: int) -> tuple[Span, ...]:
    """Every window of every block in `each` parts; what is beyond the product is left out."""
    parts = [
        (top + first + a, min(top + first + b, layout.rows))
        for top in range(0, layout.down * layout.block_rows, layout.block_rows)
        for first, last in windows
        for a, b in even(last - first, each)
    ]
    return tuple((a, b) for a, b in parts if a < b)


def _divisor(number: int, most: int) -> int:
    """The largest divisor of `number` that is at most `most`."""
    found = 1
    divisor = 1
    while divisor * divisor <= number:
        if number % divisor == 0:
            for candidate in (divisor, number // divisor):
                if found < candidate <= most:
                    found = candidate
        divisor += 1
    return found


def _pairs(bounds: tuple[int, ...]) -> tuple[Span, ...]:
    return tuple(zip(bounds[::2], bounds[1::2], strict=True))
