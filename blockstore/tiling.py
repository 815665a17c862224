"""How a coded block is cut into tiles, each of them one object.

A block of `rows` x `columns` is cut into a grid of equal tiles (the last ones of a row or column of
the grid may be smaller), numbered row by row. A matrix stored in C order is cut by rows and its
tiles are C ordered, one stored in Fortran order by columns with Fortran-ordered tiles: either way
the source is read in long contiguous runs. Columns (rows, in Fortran order) are cut only when a
single one is larger than a tile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blockstore.documents import Fields
from blockstore.errors import ManifestError

TARGET_BYTES = 8 << 20
LEAST_BYTES = 1 << 20
RESERVE_BYTES = (
    128 << 20
)  # interpreter, NumPy, botocore, thread stacks, and the transform's scratch
LEAST_CHUNK = 4096  # bytes of one coded block that the encoder must be able to hold at a time


@dataclass(frozen=True)
class TileSpan:
    """Rows `row0` to `row1` and columns `col0` to `col1` of a block, the ends excluded."""

    row0: int
    row1: int
    col0: int
    col1: int

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns) of the tile."""
        return self.row1 - self.row0, self.col1 - self.col0

    @property
    def size(self) -> int:
        """Number of entries."""
        return (self.row1 - self.row0) * (self.col1 - self.col0)


@dataclass(frozen=True)
class Tiling:
    """A grid of tiles over a block of `rows` x `columns` entries; `order` is "C" or "F"."""

    rows: int
    columns: int
    tile_rows: int
    tile_columns: int
    order: str = "C"

    def __post_init__(self) -> None:
        for name in ("rows", "columns", "tile_rows", "tile_columns"):
            value = getattr(self, name)
            if type(value) is not int or value < 1:
                raise ValueError(f"{name} must be a positive int, got {value!r}")
        if self.tile_rows > self.rows or self.tile_columns > self.columns:
            raise ValueError(
                f"a tile of {self.tile_rows} x {self.tile_columns} is larger than its block of "
                f"{self.rows} x {self.columns}"
            )
        if self.order not in ("C", "F"):
            raise ValueError(f"order must be 'C' or 'F', got {self.order!r}")

    @property
    def grid(self) -> tuple[int, int]:
        """Tiles along the rows, tiles along the columns."""
        return -(-self.rows // self.tile_rows), -(-self.columns // self.tile_columns)

    @property
    def count(self) -> int:
        """Number of tiles."""
        down, across = self.grid
        return down * across

    def span(self, tile: int) -> TileSpan:
        """Where tile number `tile` lies in the block."""
        if not 0 <= tile < self.count:
            raise IndexError(f"tile must be in [0, {self.count}), got {tile}")
        down, across = divmod(tile, self.grid[1])
        row0, col0 = down * self.tile_rows, across * self.tile_columns
        return TileSpan(
            row0,
            min(row0 + self.tile_rows, self.rows),
            col0,
            min(col0 + self.tile_columns, self.columns),
        )

    def bytes(self, itemsize: int) -> int:
        """Bytes of data in the largest tile, at `itemsize` bytes an entry."""
        return self.tile_rows * self.tile_columns * itemsize

    def to_json(self) -> dict[str, Any]:
        """The tiling as a JSON object."""
        return {
            "rows": self.rows,
            "columns": self.columns,
            "tile_rows": self.tile_rows,
            "tile_columns": self.tile_columns,
            "order": self.order,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Tiling:
        """Read back `to_json`; raises `ManifestError`."""
        fields = Fields(data, "tiling", ManifestError)
        numbers = [
            fields.integer(name, low=1) for name in ("rows", "columns", "tile_rows", "tile_columns")
        ]
        order = fields.text("order")
        try:
            return cls(numbers[0], numbers[1], numbers[2], numbers[3], order)
        except ValueError as exc:
            raise ManifestError(f"tiling: {exc}") from exc


def least_memory(workers: int) -> int:
    """The smallest `memory` in bytes with which `workers` blocks can be encoded."""
    return RESERVE_BYTES + 4 * LEAST_BYTES + workers * LEAST_CHUNK


def tile_target(workers: int, memory: int, spool: bool) -> int:
    """Bytes wanted in a tile: 8 MB where memory (or a disk spool) allows, less where not."""
    if memory < least_memory(workers):
        raise ValueError(
            f"memory must be at least {least_memory(workers):,} bytes for {workers} workers, "
            f"got {memory:,}"
        )
    usable = memory - RESERVE_BYTES
    if spool:  # only the bodies of the transfers under way are held whole
        return max(LEAST_BYTES, min(TARGET_BYTES, usable // 16))
    # N tiles and one body in flight in 5/8; 1/4 is for more bodies, 1/8 for reads of the source.
    return min(TARGET_BYTES, usable * 5 // 8 // (workers + 1))


def choose_tiling(
    block_rows: int,
    columns: int,
    itemsize: int,
    workers: int,
    memory: int = 1 << 30,
    spool: bool = True,
    *,
    order: str = "C",
    target: int | None = None,
) -> Tiling:
    """Cut blocks of `block_rows` x `columns` entries of `itemsize` bytes into tiles.

    Parameters
    ----------
    memory : bytes that the encoding process may use in all
    spool : whether tiles of all workers may wait on disk when they do not fit in memory; without
        it, N tiles must fit
    order : the order in which the source is stored, "C" or "F"
    target : bytes wanted in a tile instead of `tile_target(workers, memory, spool)`

    Raises ValueError, with the number needed, if `memory` is too small.
    """
    wanted = tile_target(workers, memory, spool) if target is None else target
    major, minor = (block_rows, columns) if order == "C" else (columns, block_rows)
    entries = max(1, wanted // itemsize)
    if minor <= entries:
        lines = _even(major, entries // minor)
        cut = (lines, minor)
    else:
        cut = (1, _even(minor, entries))
    tile_rows, tile_columns = cut if order == "C" else cut[::-1]
    return Tiling(block_rows, columns, tile_rows, tile_columns, order)


def _even(total: int, largest: int) -> int:
    """The size of equal parts of `total`, none above `largest` (in as few parts as that allows)."""
    parts = -(-total // min(total, largest))
    return -(-total // parts)
