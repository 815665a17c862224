"""What a worker is asked to do: a versioned event of less than 1 KB, everything else by key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from blockstore import keys
from blockstore.arrays import check_dtype
from blockstore.documents import Fields
from blockstore.errors import ArrayRefused, NameRefused, TaskRefused
from blockstore.manifest import Manifest
from blockstore.subtasks import MOST_SUBTASKS
from blockstore.tiling import Tiling

VERSION = 1


def compute_dtype(coded: Any, x: Any) -> np.dtype[Any]:
    """The dtype in which a worker multiplies: float32 where it holds both operands, else float64.

    Integer products would wrap without a sign, so they are never taken.
    """
    return np.result_type(np.dtype(coded), np.dtype(x), np.float32)


@dataclass(frozen=True, kw_only=True)
class WorkerTask:
    """What one worker is to do: its blocks of `matrix` times the x of `run`.

    A block has `block_rows` x `columns` entries of `dtype` and lies in tiles of `tile_rows` x
    `tile_columns`; x has shape (columns,) or (columns, k). A worker has `subtasks` blocks, worker *
    subtasks and those that follow; it does those named in `todo` in that order (none named: all)
    and writes `per_object` answers at a time. `sent`: when it was invoked, in seconds since 1970,
    which whoever invokes it adds to the event; 0 if that does not say.
    """

    run: str
    attempt: int
    worker: int
    workers: int
    matrix: str
    encoding: str
    block_rows: int
    columns: int
    tile_rows: int
    tile_columns: int
    dtype: str
    x_shape: tuple[int, ...]
    x_dtype: str
    x_digest: str
    subtasks: int = 1
    per_object: int = 1
    todo: tuple[int, ...] = ()
    version: int = VERSION
    sent: float = field(default=0.0, compare=False)

    @classmethod
    def of(
        cls,
        manifest: Manifest,
        *,
        run: str,
        attempt: int,
        worker: int,
        x_shape: tuple[int, ...],
        x_dtype: str,
        x_digest: str,
        todo: tuple[int, ...] = (),
    ) -> WorkerTask:
        """The task of one worker of a run on the matrix that `manifest` describes.

        `todo`: those of its tasks that are still missing, ascending; all if none are named.
        """
        tiling = manifest.tiling
        return cls(
            run=run,
            attempt=attempt,
            worker=worker,
            workers=manifest.workers,
            matrix=manifest.name,
            encoding=manifest.encoding,
            block_rows=tiling.rows,
            columns=tiling.columns,
            tile_rows=tiling.tile_rows,
            tile_columns=tiling.tile_columns,
            dtype=manifest.dtype,
            x_shape=x_shape,
            x_dtype=x_dtype,
            x_digest=x_digest,
            subtasks=manifest.shares.per_worker,
            per_object=manifest.shares.per_object,
            todo=todo if len(todo) < manifest.shares.per_worker else (),
        )

    @property
    def objects(self) -> tuple[tuple[int, int], ...]:
        """(first, last) task of every object that is to be written, in order."""
        wanted = self.todo or range(self.subtasks)
        firsts = sorted({task - task % self.per_object for task in wanted})
        return tuple((first, first + self.per_object - 1) for first in firsts)

    @property
    def tiling(self) -> Tiling:
        """How the block is cut."""
        return Tiling(self.block_rows, self.columns, self.tile_rows, self.tile_columns)

    @property
    def result_shape(self) -> tuple[int, ...]:
        """(block_rows,) or (block_rows, k)."""
        return (self.block_rows, *self.x_shape[1:])

    @property
    def result_dtype(self) -> np.dtype[Any]:
        """Dtype of the answer, which is the one multiplied in."""
        return compute_dtype(self.dtype, self.x_dtype)

    def block(self, subtask: int = 0) -> int:
        """The coded block that a task of this worker is about."""
        return self.worker * self.subtasks + subtask

    def tile_key(self, tile: int, subtask: int = 0) -> str:
        """Key of a tile of one of this worker's blocks."""
        return keys.tile_key(self.matrix, self.encoding, self.block(subtask), tile)

    def to_event(self) -> dict[str, Any]:
        """The task as the JSON object that the worker is invoked with, but for `sent`."""
        several: dict[str, Any] = {}
        if self.subtasks > 1:
            several = {"subtasks": self.subtasks, "per_object": self.per_object}
        if self.todo:
            several["todo"] = list(self.todo)
        return {
            "version": self.version,
            "run": self.run,
            "attempt": self.attempt,
            "worker": self.worker,
            "workers": self.workers,
            "matrix": self.matrix,
            "encoding": self.encoding,
            "block_rows": self.block_rows,
            "columns": self.columns,
            "tile_rows": self.tile_rows,
            "tile_columns": self.tile_columns,
            "dtype": self.dtype,
            "x_shape": list(self.x_shape),
            "x_dtype": self.x_dtype,
            "x_digest": self.x_digest,
            **several,
        }

    @classmethod
    def from_event(cls, event: Mapping[str, Any]) -> WorkerTask:
        """Read and check an event; raises `TaskRefused` naming the field and the rule."""
        fields = Fields(event, "worker event", TaskRefused)
        fields.version(VERSION)
        workers = fields.integer("workers", low=1)
        block_rows = fields.integer("block_rows", low=1)
        columns = fields.integer("columns", low=1)
        subtasks, per_object, todo = _several(fields, event)
        x_shape = fields.integers("x_shape", low=1)
        if len(x_shape) not in (1, 2) or x_shape[0] != columns:
            raise fields.fail("x_shape", f"[{columns}] or [{columns}, k]")
        try:
            keys.validate_run(fields.text("run"))
            keys.validate_name(fields.text("matrix"))
            keys.validate_encoding(fields.text("encoding"))
            for name in ("dtype", "x_dtype"):
                check_dtype(np.dtype(fields.text(name)))
        except (NameRefused, ArrayRefused, TypeError) as exc:
            raise TaskRefused(f"worker event: {exc}") from exc
        return cls(
            run=fields.text("run"),
            attempt=fields.integer("attempt"),
            worker=fields.integer("worker", high=workers - 1),
            workers=workers,
            matrix=fields.text("matrix"),
            encoding=fields.text("encoding"),
            block_rows=block_rows,
            columns=columns,
            tile_rows=fields.integer("tile_rows", low=1, high=block_rows),
            tile_columns=fields.integer("tile_columns", low=1, high=columns),
            dtype=fields.text("dtype"),
            x_shape=x_shape,
            x_dtype=fields.text("x_dtype"),
            x_digest=fields.text("x_digest"),
            subtasks=subtasks,
            per_object=per_object,
            todo=todo,
            sent=sent_at(fields, event),
        )


def sent_at(fields: Fields, event: Mapping[str, Any]) -> float:
    """When an event was sent, 0 if it does not say."""
    return fields.number("sent") if "sent" in event else 0.0


def _several(fields: Fields, event: Mapping[str, Any]) -> tuple[int, int, tuple[int, ...]]:
    """(subtasks, per_object, todo) of an event; one task when it says nothing."""
    if "subtasks" not in event:
        return 1, 1, ()
    subtasks = fields.integer("subtasks", low=1, high=MOST_SUBTASKS)
    per_object = fields.integer("per_object", low=1, high=subtasks)
    if subtasks % per_object:
        raise fields.fail("per_object", f"a divisor of {subtasks}")
    todo = fields.integers("todo") if "todo" in event else ()
    if any(task >= subtasks for task in todo) or list(todo) != sorted(set(todo)):
        raise fields.fail("todo", f"different tasks below {subtasks}, in order")
    return subtasks, per_object, todo
