"""What a worker of a matrix product is asked to do: one coded block of A times one of B^T."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from blockstore import keys
from blockstore.arrays import check_dtype
from blockstore.documents import Fields
from blockstore.errors import ArrayRefused, NameRefused, TaskRefused
from blockstore.manifest import Manifest
from blockstore.pairs import MatrixPair, Subject, pair_dtype
from blockstore.records import RunSpec
from blockstore.tasks import VERSION, WorkerTask, sent_at
from blockstore.tiling import Tiling

__all__ = ["BAND_BYTES", "CodedBlock", "PairTask", "Reading", "Task", "parse_task", "task_of"]

BAND_BYTES = 64 << 20
"""Rows of a block that are held, converted, while the other block streams by."""


@dataclass(frozen=True, kw_only=True)
class CodedBlock:
    """Block `number` of an encoded matrix: `rows` x `columns` entries of `dtype` in tiles."""

    matrix: str
    encoding: str
    number: int
    rows: int
    columns: int
    tile_rows: int
    tile_columns: int
    dtype: str

    @classmethod
    def of(cls, manifest: Manifest, number: int) -> CodedBlock:
        """The block that a manifest describes."""
        tiling = manifest.tiling
        return cls(
            matrix=manifest.name,
            encoding=manifest.encoding,
            number=number,
            rows=tiling.rows,
            columns=tiling.columns,
            tile_rows=tiling.tile_rows,
            tile_columns=tiling.tile_columns,
            dtype=manifest.dtype,
        )

    @property
    def tiling(self) -> Tiling:
        """How the block is cut."""
        return Tiling(self.rows, self.columns, self.tile_rows, self.tile_columns)

    @property
    def inner_cut(self) -> bool:
        """Every tile has all rows: the block can be read along the inner dimension."""
        return self.tile_rows == self.rows

    def block(self, subtask: int = 0) -> int:
        """The coded block; there are no subtasks."""
        return self.number + subtask

    def tile_key(self, tile: int, subtask: int = 0) -> str:
        """Key of a tile."""
        return keys.tile_key(self.matrix, self.encoding, self.block(subtask), tile)

    def band_rows(self, itemsize: int) -> int:
        """Rows that are held at a time, at `itemsize` bytes an entry: whole tiles, or all rows."""
        row = self.columns * itemsize
        if self.rows * row <= BAND_BYTES:
            return self.rows
        return min(self.rows, self.tile_rows * max(1, BAND_BYTES // (self.tile_rows * row)))

    def to_json(self) -> dict[str, Any]:
        """As it stands in the event; both blocks of a task have the same columns."""
        return {
            "matrix": self.matrix,
            "encoding": self.encoding,
            "number": self.number,
            "rows": self.rows,
            "tile_rows": self.tile_rows,
            "tile_columns": self.tile_columns,
            "dtype": self.dtype,
        }

    @classmethod
    def from_fields(cls, fields: Fields, columns: int) -> CodedBlock:
        """Read and check; raises `TaskRefused`."""
        rows = fields.integer("rows", low=1)
        try:
            keys.validate_name(fields.text("matrix"))
            keys.validate_encoding(fields.text("encoding"))
            check_dtype(np.dtype(fields.text("dtype")))
        except (NameRefused, ArrayRefused, TypeError) as exc:
            raise TaskRefused(f"worker event: {exc}") from exc
        return cls(
            matrix=fields.text("matrix"),
            encoding=fields.text("encoding"),
            number=fields.integer("number"),
            rows=rows,
            columns=columns,
            tile_rows=fields.integer("tile_rows", low=1, high=rows),
            tile_columns=fields.integer("tile_columns", low=1, high=columns),
            dtype=fields.text("dtype"),
        )


@dataclass(frozen=True)
class Reading:
    """How a worker reads its two blocks in bounded memory.

    held : whose rows are held, `bands` times some of them, while the other block is read from its
    begin to its end each time; None: both are read along the inner dimension, once.
    """

    held: Literal["left", "right"] | None
    band_rows: int
    bands: int


@dataclass(frozen=True, kw_only=True)
class PairTask:
    """What one worker is to do: `left` times the transpose of `right`, answer (b1, b2).

    encoding : id of the pair; x_digest : digest of B^T, in the place of x's; sent : as for a
    `WorkerTask`.
    """

    run: str
    attempt: int
    worker: int
    workers: int
    left: CodedBlock
    right: CodedBlock
    encoding: str
    x_digest: str
    version: int = VERSION
    sent: float = field(default=0.0, compare=False)

    subtasks = 1
    per_object = 1

    @classmethod
    def of(
        cls, pair: MatrixPair, *, run: str, attempt: int, worker: int, x_digest: str
    ) -> PairTask:
        """The task of worker (i, j), number i N2 + j."""
        row, column = divmod(worker, pair.right.workers)
        return cls(
            run=run,
            attempt=attempt,
            worker=worker,
            workers=pair.workers,
            left=CodedBlock.of(pair.left, row),
            right=CodedBlock.of(pair.right, column),
            encoding=pair.encoding,
            x_digest=x_digest,
        )

    @property
    def result_shape(self) -> tuple[int, int]:
        """(b1, b2)."""
        return self.left.rows, self.right.rows

    @property
    def result_dtype(self) -> np.dtype[Any]:
        """Dtype of the answer, which is the one multiplied in."""
        return pair_dtype(self.left.dtype, self.right.dtype)

    @property
    def reading(self) -> Reading:
        """The way with the fewest bytes read, of those with the least in memory.

        A block of `BAND_BYTES` at most is held whole and the other one read once. A larger one is
        held band by band if its tiles are rows, and the other one read once for each band.
        """
        left, right, itemsize = self.left, self.right, self.result_dtype.itemsize
        if left.inner_cut and right.inner_cut:
            return Reading(None, 0, 1)
        ways: list[tuple[int, int, Reading]] = []
        sides: tuple[tuple[Literal["left", "right"], CodedBlock, CodedBlock], ...] = (
            ("left", left, right),
            ("right", right, left),
        )
        for side, held, other in sides:
            rows = held.band_rows(itemsize)
            bands = math.ceil(held.rows / rows)
            read = _bytes(held) + bands * _bytes(other)
            ways.append((read, rows * held.columns, Reading(side, rows, bands)))
        return min(ways, key=lambda way: way[:2])[2]

    @property
    def tiles_read(self) -> int:
        """GETs of tiles."""
        way = self.reading
        counts = {"left": self.left.tiling.count, "right": self.right.tiling.count}
        if way.held is None:
            return sum(counts.values())
        other = "right" if way.held == "left" else "left"
        return counts[way.held] + way.bands * counts[other]

    @property
    def bytes_read(self) -> int:
        """Bytes of the tiles read."""
        way = self.reading
        if way.held is None:
            return _bytes(self.left) + _bytes(self.right)
        held, other = self.left, self.right
        if way.held == "right":
            held, other = other, held
        return _bytes(held) + way.bands * _bytes(other)

    def to_event(self) -> dict[str, Any]:
        """The task as the JSON object that the worker is invoked with."""
        return {
            "version": self.version,
            "run": self.run,
            "attempt": self.attempt,
            "worker": self.worker,
            "workers": self.workers,
            "columns": self.left.columns,
            "left": self.left.to_json(),
            "right": self.right.to_json(),
            "encoding": self.encoding,
            "x_digest": self.x_digest,
        }

    @classmethod
    def from_event(cls, event: Mapping[str, Any]) -> PairTask:
        """Read and check an event; raises `TaskRefused` naming the field and the rule."""
        fields = Fields(event, "worker event", TaskRefused)
        fields.version(VERSION)
        workers, columns = fields.integer("workers", low=1), fields.integer("columns", low=1)
        try:
            keys.validate_run(fields.text("run"))
            keys.validate_encoding(fields.text("encoding"))
        except NameRefused as exc:
            raise TaskRefused(f"worker event: {exc}") from exc
        blocks = [
            CodedBlock.from_fields(
                Fields(fields.object(side), f"worker event: {side}", TaskRefused), columns
            )
            for side in ("left", "right")
        ]
        return cls(
            run=fields.text("run"),
            attempt=fields.integer("attempt"),
            worker=fields.integer("worker", high=workers - 1),
            workers=workers,
            left=blocks[0],
            right=blocks[1],
            encoding=fields.text("encoding"),
            x_digest=fields.text("x_digest"),
            sent=sent_at(fields, event),
        )


Task = WorkerTask | PairTask


def task_of(
    subject: Subject, spec: RunSpec, *, attempt: int, worker: int, todo: tuple[int, ...] = ()
) -> Task:
    """The task of one worker of a run; `todo`: those of its tasks that are missing."""
    if isinstance(subject, MatrixPair):
        return PairTask.of(
            subject, run=spec.run, attempt=attempt, worker=worker, x_digest=spec.x_digest
        )
    return WorkerTask.of(
        subject,
        run=spec.run,
        attempt=attempt,
        worker=worker,
        x_shape=spec.x_shape,
        x_dtype=spec.x_dtype,
        x_digest=spec.x_digest,
        todo=todo,
    )


def parse_task(event: Mapping[str, Any]) -> Task:
    """Read and check a worker's event; raises `TaskRefused`."""
    if isinstance(event, dict) and "right" in event:
        return PairTask.from_event(event)
    return WorkerTask.from_event(event)


def _bytes(block: CodedBlock) -> int:
    return block.rows * block.columns * np.dtype(block.dtype).itemsize
