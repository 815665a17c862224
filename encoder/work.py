"""What a function that encodes does with a task."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import numpy as np

from blockstore import keys
from blockstore.bucket import Bucket
from blockstore.manifest import Manifest
from encoder.layout import piece_bytes, plan_layout
from encoder.remote import EncodeJob, ScanTask, SourceRef, TaskRefused, WriteTask, scan_to_json
from encoder.scan import merge, scan_leaves, scan_threads
from encoder.sources.npy import S3_SCHEME, ObjectSource
from encoder.tiles import TileWriter
from polarcodes import code_from_manifest

MARGIN = 2.0  # a tile is begun if there is time for this many times the slowest one so far
LAST_SECONDS = 15.0  # for what comes after: uploads under way, the answer


def scan_part(bucket: Bucket, task: ScanTask, memory: int) -> dict[str, Any]:
    """Pass 1 over a range of leaves: least and greatest entry, digests, or the first bad entry."""
    with _open(bucket, task.source) as source:
        piece = piece_bytes(memory, scan_threads(source))
        parts = scan_leaves(source, task.first, task.stop, piece, lambda _: None)
        return scan_to_json(merge(source.order, parts))


def write_tiles(
    bucket: Bucket,
    task: WriteTask,
    *,
    memory: int,
    folder: str,
    time_left: Callable[[], float],
    clock: Callable[[], float],
) -> list[int]:
    """Encode and write the tiles of a task; those written when time ran short, or all of them.

    Raises `SourceChanged`, `MemoryTooSmall`, `SpoolTooSmall`, `TaskRefused`, the store's errors.
    """
    job = EncodeJob.from_json(bucket.get(keys.encode_job_key(task.matrix, task.encoding)))
    manifest = job.manifest
    if (manifest.name, manifest.encoding) != (task.matrix, task.encoding):
        raise TaskRefused("the job in the bucket is of another encoding")
    code = code_from_manifest(manifest.code)
    with _open(bucket, job.source) as source:
        _check_source(source, manifest)
        layout = plan_layout(
            manifest.tiling,
            np.dtype(manifest.dtype).itemsize,
            code.workers,
            memory,
            parallel_reads=source.parallel_reads,
            disk_free=shutil.disk_usage(folder).free,
        )
        clocked = _Turns(clock, time_left)
        missing = {
            tile: range(manifest.blocks) if blocks is None else blocks
            for tile, blocks in task.tiles.items()
        }
        with TileWriter(bucket, source, code, manifest, layout, folder) as writer:
            return writer.write(missing, clocked.more)


class _Turns:
    """Whether there is time for another tile, by the slowest one so far."""

    def __init__(self, clock: Callable[[], float], time_left: Callable[[], float]) -> None:
        self._clock = clock
        self._time_left = time_left
        self._began = clock()
        self._slowest = 0.0

    def more(self) -> bool:
        """Asked after every tile."""
        now = self._clock()
        self._slowest = max(self._slowest, now - self._began)
        self._began = now
        return self._time_left() >= LAST_SECONDS + MARGIN * self._slowest


def _open(bucket: Bucket, ref: SourceRef) -> ObjectSource:
    return ObjectSource(f"{S3_SCHEME}{bucket.name}/{ref.key}", bucket.client, ref.etag)


def _check_source(source: ObjectSource, manifest: Manifest) -> None:
    if source.shape != manifest.shape or source.order != manifest.tiling.order:
        raise TaskRefused(
            f"the source is {source.shape} in {source.order} order, the manifest says "
            f"{manifest.shape} in {manifest.tiling.order} order"
        )
