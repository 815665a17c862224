"""Pass 2: encode the tiles that are missing and write them, uploads overlapping the next tile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore import keys
from blockstore.arrays import npy_header
from blockstore.bucket import Bucket
from blockstore.manifest import Manifest
from blockstore.tiling import TileSpan
from blockstore.upload_buffers import UploadBuffers
from encoder.fill import BlockReader, Room
from encoder.layout import Layout
from encoder.pieces import Piece, grouped, pieces
from encoder.sources.source import Source
from encoder.stages import MemoryStage, SpoolStage, Stage
from polarcodes import ErasureCode

Missing = Mapping[int, Sequence[int]]
Count = Callable[[int], None]


def tile_header(manifest: Manifest, span: TileSpan) -> bytes:
    """The .npy header of a tile: tiles of Fortran tilings are in Fortran order."""
    return npy_header(manifest.dtype, span.shape, fortran=manifest.tiling.order == "F")


def tile_size(manifest: Manifest, tile: int) -> int:
    """Bytes of a tile's object."""
    span = manifest.tiling.span(tile)
    return len(tile_header(manifest, span)) + span.size * np.dtype(manifest.dtype).itemsize


def missing_tiles(bucket: Bucket, manifest: Manifest) -> dict[int, list[int]]:
    """The blocks whose object is not there, or not of the right size, for every tile that lacks
    some."""
    sizes = [tile_size(manifest, tile) for tile in range(manifest.tiling.count)]
    there = set()
    for info in bucket.list(keys.coded_prefix(manifest.name, manifest.encoding)):
        try:
            block, tile = keys.parse_tile_key(info.key)
        except ValueError:
            continue
        if tile < len(sizes) and info.size == sizes[tile]:
            there.add((block, tile))
    missing = {
        tile: [block for block in range(manifest.blocks) if (block, tile) not in there]
        for tile in range(len(sizes))
    }
    return {tile: blocks for tile, blocks in missing.items() if blocks}


class TileWriter:
    """Encodes tiles of all workers at a time and uploads those that are missing.

    A tile is encoded in chunks on all processors, while the one before it is uploaded. Memory as
    `layout` says. `encoded` and `uploaded` are told of the bytes of data done. A context manager:
    leaving it stops the threads and removes the spool, whatever happened.
    """

    def __init__(
        self,
        bucket: Bucket,
        source: Source,
        code: ErasureCode,
        manifest: Manifest,
        layout: Layout,
        folder: str | None,
        encoded: Count = lambda count: None,
        uploaded: Count = lambda count: None,
    ) -> None:
        self._bucket = bucket
        self._source = source
        self._code = code
        self._manifest = manifest
        self._layout = layout
        self._folder = folder
        self._encoded = encoded
        self._uploaded = uploaded
        self._dtype = np.dtype(manifest.dtype)
        self._reader = BlockReader(source, manifest.block_rows, code.slots, layout.piece_bytes)
        self._encoders = ThreadPoolExecutor(layout.encoders, "polarlambda-transform")
        self._uploads = ThreadPoolExecutor(layout.threads, "polarlambda-upload")
        self._stages: list[Stage] = []
        self._bodies = UploadBuffers()

    def __enter__(self) -> TileWriter:
        self._stages = self._make_stages()
        return self

    def __exit__(self, *_: object) -> None:
        self._encoders.shutdown(cancel_futures=True)
        self._uploads.shutdown(cancel_futures=True)
        self._reader.close()
        for stage in self._stages:
            stage.close()

    def write(self, missing: Missing, more: Callable[[], bool] = lambda: True) -> list[int]:
        """Encode and upload the missing blocks of tiles; the tiles done.

        `more` is asked before every tile but the first whether there is time for it. Raises the
        first error of any upload, and `SourceChanged` before anything of a changed source is
        uploaded.
        """
        pending: list[list[Future[None]]] = [[] for _ in self._stages]
        done: list[int] = []
        for turn, (tile, blocks) in enumerate(missing.items()):
            if turn and not more():
                break
            place = turn % len(self._stages)
            for future in pending[place]:  # the tile that was here before must be gone
                future.result()
            self._encode(tile, self._stages[place])
            self._source.check_unchanged()
            pending[place] = [
                self._uploads.submit(self._upload, tile, block, self._stages[place])
                for block in blocks
            ]
            done.append(tile)
        for futures in pending:
            for future in futures:
                future.result()
        return done

    def _make_stages(self) -> list[Stage]:
        workers, layout = self._code.workers, self._layout
        entries = self._manifest.tiling.bytes(1)
        if not layout.spooled:
            return [MemoryStage(workers, entries, self._dtype) for _ in range(layout.stages)]
        if self._folder is None:
            raise ValueError("a spooled layout needs a folder")
        shared: NDArray[Any] = np.empty(workers * layout.group_entries, self._dtype)
        tile_bytes = entries * self._dtype.itemsize
        return [SpoolStage(self._folder, workers, tile_bytes, shared) for _ in range(layout.stages)]

    def _encode(self, tile: int, stage: Stage) -> None:
        span = self._manifest.tiling.span(tile)
        lines, length = span.shape if self._source.order == "C" else span.shape[::-1]
        stage.clear()
        chunks = pieces(lines, length, self._layout.chunk_entries)
        for group in grouped(chunks, self._layout.group_entries):
            self._encode_group(group, span, stage)

    def _encode_group(
        self, group: Sequence[tuple[int, Piece]], span: TileSpan, stage: Stage
    ) -> None:
        """Read what a group of chunks needs in long reads, then transform chunk by chunk."""
        base = group[0][0]
        buffers = [stage.buffer(offset, base, chunk.size) for offset, chunk in group]
        rooms = [
            Room(chunk, buffer.reshape(len(buffer), chunk.line1 - chunk.line0, -1))
            for (_, chunk), buffer in zip(group, buffers, strict=True)
        ]
        self._reader.fill(rooms, span)

        def work(offset: int, buffer: NDArray[Any]) -> None:
            self._code.encode_inplace(buffer)
            self._encoded(buffer.nbytes)
            stage.keep(offset, buffer)

        for _ in self._encoders.map(work, (offset for offset, _ in group), buffers):
            pass

    def _upload(self, tile: int, block: int, stage: Stage) -> None:
        manifest = self._manifest
        span = manifest.tiling.span(tile)
        key = keys.tile_key(manifest.name, manifest.encoding, block, tile)
        header = tile_header(manifest, span)
        body, view = self._bodies.make(header, span.size * self._dtype.itemsize)
        stage.copy_tile(manifest.shares.places[block], view)
        self._bucket.put(key, body)
        self._uploaded(span.size * self._dtype.itemsize)
