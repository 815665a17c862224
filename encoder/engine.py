"""Who reads and who encodes: this process, or functions elsewhere."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod

import numpy as np

from blockstore.bucket import Bucket
from blockstore.manifest import Manifest
from encoder.layout import Space, piece_bytes, plan_layout
from encoder.ordered_scan import scan_in_order
from encoder.progress import Counter, Listener
from encoder.scan import Scan, scan_source, scan_threads
from encoder.sources.source import Source
from encoder.tiles import Missing, TileWriter
from polarcodes import ErasureCode


class Engine(ABC):
    """The two passes over a source.

    Both kinds of engine give the same scan, and the same tiles for the same manifest.
    """

    @abstractmethod
    def room(self, source: Source) -> Space:
        """What N tiles may take, for the tiling."""

    @abstractmethod
    def scan(self, source: Source) -> Scan:
        """Pass 1. Raises `SourceRefused` for entries that are not finite."""

    @abstractmethod
    def write(
        self, source: Source, code: ErasureCode, manifest: Manifest, missing: Missing
    ) -> None:
        """Pass 2: encode and write the missing tiles."""


class LocalEngine(Engine):
    """Both passes in this process: `memory` bytes in all, tiles that do not fit in `folder`."""

    def __init__(
        self,
        bucket: Bucket,
        *,
        memory: int,
        folder: str | None,
        threads: int | None = None,
        progress: Listener | None = None,
    ) -> None:
        self._bucket = bucket
        self._memory = memory
        self._folder = folder
        self._threads = threads
        self._progress = progress

    def room(self, source: Source) -> Space:
        """What is left beside the source's own, and the free disk."""
        return Space(self._memory - source.library_bytes, self._disk_free())

    def scan(self, source: Source) -> Scan:
        """Read on all processors."""
        total = source.shape[0] * source.shape[1] * source.dtype.itemsize
        memory = self._memory - source.library_bytes
        counter = Counter("scan", total, self._progress)
        if source.looks:
            piece = piece_bytes(memory, source.parallel_reads)
            return scan_in_order(source, piece, counter.add, source.look)
        return scan_source(source, piece_bytes(memory, scan_threads(source)), counter.add)

    def write(
        self, source: Source, code: ErasureCode, manifest: Manifest, missing: Missing
    ) -> None:
        """Transform tile by tile, uploads overlapping."""
        itemsize = np.dtype(manifest.dtype).itemsize
        layout = plan_layout(
            manifest.tiling,
            itemsize,
            code.workers,
            self._memory - source.library_bytes,
            parallel_reads=source.parallel_reads,
            threads=self._threads,
            disk_free=self._disk_free(),
        )
        sizes = {tile: manifest.tiling.span(tile).size * itemsize for tile in missing}
        total = manifest.block_rows * manifest.columns * itemsize * code.workers
        absent = sum(sizes[tile] * len(workers) for tile, workers in missing.items())
        encoded = Counter("encode", sum(sizes.values()) * code.workers, self._progress)
        uploaded = Counter("upload", total, self._progress)
        uploaded.add(total - absent)
        with TileWriter(
            self._bucket, source, code, manifest, layout, self._folder, encoded.add, uploaded.add
        ) as writer:
            writer.write(missing)

    def _disk_free(self) -> int | None:
        return None if self._folder is None else shutil.disk_usage(self._folder).free
