"""What a worker is asked to do: a versioned event of less than 1 KB, everything else by key."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from blockstore import keys
from blockstore.arrays import check_dtype
from blockstore.documents import Fields
from blockstore.errors import ArrayRefused, NameRefused, TaskRefused
from blockstore.manifest import Manifest
from blockstore.tiling import Tiling

VERSION = 1


def compute_dtype(coded: Any, x: Any) -> np.dtype[Any]:
    """The dtype in which a worker multiplies: float32 where it holds both operands, else float64.

    Integer products would wrap without a sign, so they are never taken.
    """
    return np.result_type(np.dtype(coded), np.dtype(x), np.float32)


@dataclass(frozen=True, kw_only=True)
class WorkerTask:
    """One coded product: block `worker` of `matrix` times the x of `run`.

    The block has `block_rows` x `columns` entries of `dtype` and lies in tiles of `tile_rows` x
    `tile_columns`; x has shape (columns,) or (columns, k).
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
    version: int = VERSION

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
    ) -> WorkerTask:
        """The task of one worker of a run on the matrix that `manifest` describes."""
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
        )

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

    def tile_key(self, tile: int) -> str:
        """Key of a tile of this worker's block."""
        return keys.tile_key(self.matrix, self.encoding, self.worker, tile)

    def to_event(self) -> dict[str, Any]:
        """The task as the JSON object that the worker is invoked with."""
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
        }

    @classmethod
    def from_event(cls, event: Mapping[str, Any]) -> WorkerTask:
        """Read and check an event; raises `TaskRefused` naming the field and the rule."""
        fields = Fields(event, "worker event", TaskRefused)
        fields.version(VERSION)
        workers = fields.integer("workers", low=1)
        block_rows = fields.integer("block_rows", low=1)
        columns = fields.integer("columns", low=1)
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
        )
