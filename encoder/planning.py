"""From what pass 1 found to the manifest that will be published: dtype, tiling, encoding id."""

from __future__ import annotations

import os
import tempfile
from datetime import UTC, datetime
from typing import Any

import numpy as np

from blockstore.manifest import Manifest
from blockstore.subtasks import Subtasks
from blockstore.tiling import Tiling, choose_tiling, tile_target
from encoder.errors import SourceRefused, SpoolTooSmall
from encoder.identity import encoding_id
from encoder.layout import DISK_MARGIN, Space, fits_in_memory
from encoder.scan import Scan
from encoder.sources.source import Source
from polarcodes import ErasureCode, InvalidBlocks

SpoolFolder = str | os.PathLike[str] | bool | None


def spool_folder(spool: SpoolFolder) -> str | None:
    """The folder of the disk spool: the system's temporary one unless named, None for none."""
    if spool is False:
        return None
    if spool is None or spool is True:
        return tempfile.gettempdir()
    folder = os.fspath(spool)
    if not os.path.isdir(folder):
        raise SpoolTooSmall(f"spool must be an existing folder, got {folder!r}")
    return folder


def coded_dtype(source: Source, scan: Scan, code: ErasureCode) -> np.dtype[Any]:
    """The dtype that holds every coded sum; raises `SourceRefused` if none does."""
    try:
        return code.encoded_dtype(source.dtype, scan.low, scan.high)
    except InvalidBlocks as exc:
        raise SourceRefused(f"{source.description}: {exc}") from exc


def draft_manifest(
    source: Source,
    scan: Scan,
    name: str,
    code: ErasureCode,
    *,
    dtype: np.dtype[Any],
    room: Space,
    subtasks: Subtasks | None = None,
) -> Manifest:
    """The manifest of a new encoding; nothing is written. `room`: see `Engine.room`."""
    n, d = source.shape
    block_rows = -(-n // code.data_blocks)
    tiling = tiling_within(
        room,
        block_rows,
        d,
        dtype.itemsize,
        code.workers,
        order=source.order,
        parallel_reads=source.parallel_reads,
    )
    code_manifest = code.to_manifest()
    return Manifest(
        name=name,
        created=datetime.now(UTC).isoformat(timespec="milliseconds"),
        rows=n,
        columns=d,
        source_dtype=source.dtype.newbyteorder("<").str,
        block_rows=block_rows,
        dtype=dtype.str,
        tiling=tiling,
        code=code_manifest,
        encoding=encoding_id(scan.digest, code_manifest, dtype.str, tiling, subtasks),
        source_digest=scan.digest,
        source=source.description,
        subtasks=subtasks,
        companions=tuple(sorted(source.companions)),
        derived=source.derived,
    )


def tiling_within(
    room: Space,
    block_rows: int,
    columns: int,
    itemsize: int,
    workers: int,
    *,
    order: str,
    parallel_reads: int,
) -> Tiling:
    """8 MB tiles where memory or disk has the room, else the largest that fit."""
    memory, disk, processors = room
    spool = disk is not None
    tiling = choose_tiling(block_rows, columns, itemsize, workers, memory, spool, order=order)
    tile = tiling.bytes(itemsize)
    if disk is None or fits_in_memory(tile, workers, memory, parallel_reads, processors):
        return tiling
    spooled = (disk - DISK_MARGIN) // workers
    if tile <= spooled:
        return tiling
    target = max(spooled, tile_target(workers, memory, False))
    return choose_tiling(block_rows, columns, itemsize, workers, memory, order=order, target=target)
