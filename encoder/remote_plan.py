"""What functions will do to encode a matrix: calls, requests and bytes, counted by the same rules.

calls     = ceil(leaves / leaves of a call) + ceil(tiles / tiles of a call)   (`encoder.fanout`)
GETs      = a call's opening + pieces of its leaves, or of all s blocks of its tiles
PUTs      = N for each tile
bytes     = the source in each pass, and its header for each call
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from blockstore.arrays import MAX_HEADER, PREAMBLE, npy_header
from blockstore.encode_work import EncodeWork, PassWork
from blockstore.tiling import TileSpan, Tiling, choose_tiling
from encoder.digest import leaf_count, leaf_span
from encoder.fanout import function_space, leaves_of_call, tiles_of_call
from encoder.layout import Layout, fits_in_memory, piece_bytes, plan_layout
from encoder.pieces import flat_pieces, grouped, joined, pieces, requests
from encoder.planning import tiling_within
from encoder.processors import threads
from encoder.sources.npy import ObjectSource

__all__ = ["plan_remote"]

SCAN_OPENING = 2  # HEAD and header of the source
WRITE_OPENING = 3  # and the job
CALLER_GETS = 5  # bucket (twice), HEAD and header of the source, manifest
CALLER_PUTS = 2  # job, manifest
LIST_PAGE = 1000
MOST_LEAVES = 1 << 15  # counted one by one, 256 GB; the others are taken to be like them
MB = 1 << 20


def plan_remote(
    shape: tuple[int, int],
    dtype: np.dtype[Any],
    coded: np.dtype[Any],
    *,
    blocks: int,
    data_blocks: int,
    order: str = "C",
    memory: int,
    disk: int,
    concurrency: int,
    processors: int | None = None,
) -> EncodeWork:
    """Count what `encode(..., engine=RemoteEngine(...))` will ask of functions and of the store.

    shape, dtype, order : of the .npy object; coded : dtype of the `blocks` coded blocks; memory,
    disk : bytes of a function; concurrency : calls at a time; processors : of a function.

    Raises `MemoryTooSmall`, `SpoolTooSmall`, ValueError: no function holds a tile of every block.
    """
    reads, rows = ObjectSource.parallel_reads, -(-shape[0] // data_blocks)
    room = function_space(memory, disk)
    tiling = tiling_within(
        room, rows, shape[1], coded.itemsize, blocks, order=order, parallel_reads=reads
    )
    layout = plan_layout(
        tiling,
        coded.itemsize,
        blocks,
        memory,
        parallel_reads=reads,
        disk_free=disk,
        processors=processors,
    )
    tile = tiling.bytes(coded.itemsize)
    return EncodeWork(
        memory=memory,
        disk=disk,
        concurrency=concurrency,
        tiling=tiling,
        tile_bytes=tile,
        blocks=blocks,
        readers=max(reads, threads(processors)),
        uploaders=layout.threads,
        encoders=layout.encoders,
        stages=layout.stages,
        spool_bytes=layout.stages * blocks * tile if layout.spooled else 0,
        peak_bytes=layout.peak_bytes,
        full_memory=_full_tiles(rows, shape[1], coded.itemsize, blocks, order),
        scan=_scan(shape, dtype, order, memory, concurrency, processors),
        write=_write(shape, dtype, order, coded, tiling, layout, blocks, data_blocks, concurrency),
        gets=CALLER_GETS,
        puts=CALLER_PUTS,
        lists=2 + max(1, -(-blocks * tiling.count // LIST_PAGE)),
    )


def _scan(
    shape: tuple[int, int],
    dtype: np.dtype[Any],
    order: str,
    memory: int,
    concurrency: int,
    processors: int | None,
) -> PassWork:
    leaves = leaf_count(shape, dtype)
    share = leaves_of_call(leaves, concurrency)
    calls = -(-leaves // share)
    at_once = max(ObjectSource.parallel_reads, threads(processors))
    entries = max(1, piece_bytes(memory, at_once, processors) // dtype.itemsize)
    length = shape[1] if order == "C" else shape[0]
    counted = min(leaves, MOST_LEAVES)
    found = sum(
        sum(1 for _ in flat_pieces(length, *leaf_span(leaf, shape, dtype), entries))
        for leaf in range(counted)
    )
    gets = SCAN_OPENING * calls + round(found * leaves / counted)
    read = shape[0] * shape[1] * dtype.itemsize + calls * _head_bytes(shape, dtype, order)
    return PassWork(calls, leaves, share, gets, SCAN_OPENING, read)


def _write(
    shape: tuple[int, int],
    dtype: np.dtype[Any],
    order: str,
    coded: np.dtype[Any],
    tiling: Tiling,
    layout: Layout,
    blocks: int,
    data_blocks: int,
    concurrency: int,
) -> PassWork:
    share = tiles_of_call(tiling.count, tiling.bytes(coded.itemsize) * blocks, concurrency)
    calls = -(-tiling.count // share)
    entries = max(1, layout.piece_bytes // dtype.itemsize)
    known: dict[tuple[Any, ...], int] = {}
    gets = WRITE_OPENING * calls
    written = 0
    for tile in range(tiling.count):
        span = tiling.span(tile)
        kind = (span.shape, *_heights(shape[0], tiling.rows, data_blocks, span.row0, span.row1))
        if kind not in known:
            known[kind] = _tile_gets(shape, order, tiling.rows, data_blocks, span, layout, entries)
        gets += known[kind]
        header = len(npy_header(coded, span.shape, fortran=order == "F"))
        written += blocks * (span.size * coded.itemsize + header)
    read = shape[0] * shape[1] * dtype.itemsize + calls * _head_bytes(shape, dtype, order)
    puts = blocks * tiling.count
    return PassWork(calls, tiling.count, share, gets, WRITE_OPENING, read, puts, written)


def _tile_gets(
    shape: tuple[int, int],
    order: str,
    block_rows: int,
    data_blocks: int,
    span: TileSpan,
    layout: Layout,
    entries: int,
) -> int:
    """Reads of one tile of all data blocks: `encoder.fill.BlockReader`."""
    lines, length = span.shape if order == "C" else span.shape[::-1]
    found = 0
    for group in grouped(pieces(lines, length, layout.chunk_entries), layout.group_entries):
        for part in joined([piece for _, piece in group], length):
            count, width = part.line1 - part.line0, part.stop - part.start
            if order == "C":
                row0, row1 = span.row0 + part.line0, span.row0 + part.line1
            else:
                row0, row1 = span.row0 + part.start, span.row0 + part.stop
            heights = _heights(shape[0], block_rows, data_blocks, row0, row1)
            if order == "C":
                for height, number in heights:
                    found += number * requests(height, width, entries, shape[1])
            elif (row0, row1) == (0, block_rows) and shape[0] <= entries:
                found += requests(count, shape[0], entries, shape[0])
            else:
                for height, number in heights:
                    found += number * requests(count, height, entries, shape[0])
    return found


def _heights(
    rows: int, block_rows: int, data_blocks: int, row0: int, row1: int
) -> tuple[tuple[int, int], ...]:
    """(rows there are, blocks that have so many) of the rows `row0` to `row1` of every data block;
    blocks with none are left out."""
    starts = np.arange(data_blocks) * block_rows
    there = np.minimum(starts + row1, rows) - np.minimum(starts + row0, rows)
    return tuple(sorted(Counter(there[there > 0].tolist()).items()))


def _head_bytes(shape: tuple[int, int], dtype: np.dtype[Any], order: str) -> int:
    """Bytes that opening the source reads."""
    header = len(npy_header(dtype, shape, fortran=order == "F"))
    return min(MAX_HEADER + PREAMBLE, header + shape[0] * shape[1] * dtype.itemsize)


def _full_tiles(rows: int, columns: int, itemsize: int, blocks: int, order: str) -> int:
    """The least memory, in whole MB, of a function that holds a tile of the full size of every
    block."""
    tile = choose_tiling(rows, columns, itemsize, blocks, 1 << 50, order=order).bytes(itemsize)
    reads, processors = ObjectSource.parallel_reads, function_space(0, 0).processors

    def fits(megabytes: int) -> bool:
        return fits_in_memory(tile, blocks, megabytes * MB, reads, processors)

    low, high = 0, 1024
    while not fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high * MB
