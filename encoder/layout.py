"""How the memory given to the encoder is shared out, and what goes to disk.

    memory >= reserve + buffers (N x tile, or N x chunk) + bodies in flight + pieces being read

A tile of all N workers is encoded at once, because every coded row needs all data rows. If N tiles
fit in memory they stay there (twice, if that fits too: one is uploaded while the next is encoded).
If not, the tile is encoded in chunks that do fit, and collected in a spool file on disk, so that
objects stay large whatever N is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from blockstore.tiling import RESERVE_BYTES, Tiling
from encoder.errors import MemoryTooSmall, SpoolTooSmall
from encoder.processors import threads as threads_of

MAX_THREADS = 8
CHUNK_BYTES = 16 << 20
LEAST_CHUNK_ENTRIES = 1024
MAX_PIECE = 8 << 20
DISK_MARGIN = 64 << 20


class Space(NamedTuple):
    """What an encoder may take: bytes of memory, bytes of disk (None for no spool), and processors,
    None for those of this machine."""

    memory: int
    disk: int | None
    processors: int | None = None


@dataclass(frozen=True)
class Layout:
    """The decision.

    chunk_entries : entries of each coded block transformed at a time; group_entries : those read at
    a time; encoders : chunks transformed in parallel; stages : how many tiles (of all
    workers) are held at a time; spooled : whether they are held on disk; threads : uploads at
    a time; piece_bytes : largest read of the source; peak_bytes : predicted peak memory.
    """

    chunk_entries: int
    group_entries: int
    encoders: int
    stages: int
    spooled: bool
    threads: int
    piece_bytes: int
    peak_bytes: int


def piece_bytes(memory: int, parallel_reads: int, processors: int | None = None) -> int:
    """Largest read of the source: the reads under way take at most 1/8 of the usable memory."""
    usable = memory - RESERVE_BYTES
    return min(MAX_PIECE, usable // 8 // _reads(parallel_reads, processors))


def _reads(parallel_reads: int, processors: int | None) -> int:
    # Those under way or waiting, the piece in use, and its little-endian copy.
    return max(parallel_reads, threads_of(processors)) + 2


def _threads(tile: int, workers: int, memory: int, wanted: int | None) -> int:
    usable = memory - RESERVE_BYTES
    return max(1, min(wanted or MAX_THREADS, workers, usable // 4 // tile))


def _left(tile: int, threads: int, memory: int, parallel_reads: int, processors: int | None) -> int:
    piece = piece_bytes(memory, parallel_reads, processors)
    reads = _reads(parallel_reads, processors) * piece
    return memory - RESERVE_BYTES - threads * tile - reads


def fits_in_memory(
    tile: int, workers: int, memory: int, parallel_reads: int, processors: int | None = None
) -> bool:
    """Whether N tiles of `tile` bytes fit beside the reads and the uploads."""
    threads = _threads(tile, workers, memory, None)
    return workers * tile <= _left(tile, threads, memory, parallel_reads, processors)


def plan_layout(
    tiling: Tiling,
    itemsize: int,
    workers: int,
    memory: int,
    *,
    parallel_reads: int = 1,
    threads: int | None = None,
    disk_free: int | None = None,
    processors: int | None = None,
) -> Layout:
    """Share out `memory` bytes; `disk_free` is the room in the spool's folder, None for no spool,
    `processors` those of another machine that is planned for.

    Raises `MemoryTooSmall` or `SpoolTooSmall`, with the number needed.
    """
    tile = tiling.bytes(itemsize)
    entries = tile // itemsize
    pool = _threads(tile, workers, memory, threads)
    piece = piece_bytes(memory, parallel_reads, processors)
    left = _left(tile, pool, memory, parallel_reads, processors)
    encoders = threads_of(processors)
    chunk = min(entries, _chunk(workers, itemsize))
    fixed = memory - left
    if workers * tile <= left:
        stages = 2 if tiling.count > 1 and 2 * workers * tile <= left else 1
        peak = fixed + stages * workers * tile
        return Layout(chunk, entries, encoders, stages, False, pool, piece, peak)
    group = min(left // (workers * itemsize), entries)
    chunk = min(chunk, group)
    if disk_free is None or chunk < 1:
        raise MemoryTooSmall(
            f"memory of {memory:,} bytes does not hold {workers} tiles of {tile:,} bytes: give at "
            f"least {fixed + workers * tile:,} bytes, or allow a disk spool"
        )
    if disk_free < workers * tile + DISK_MARGIN:
        raise SpoolTooSmall(
            f"the spool's folder has {disk_free:,} bytes free, {workers} tiles of {tile:,} bytes "
            f"need {workers * tile + DISK_MARGIN:,}: choose another folder, or give at least "
            f"{fixed + workers * tile:,} bytes of memory"
        )
    roomy = disk_free >= 2 * workers * tile + DISK_MARGIN
    stages = 2 if tiling.count > 1 and roomy else 1
    peak = fixed + workers * group * itemsize
    return Layout(chunk, group, encoders, stages, True, pool, piece, peak)


def _chunk(workers: int, itemsize: int) -> int:
    """Entries transformed at a time: by N and dtype alone, because the last bit of a float sum may
    depend on it, and coded bytes are to be the same on every machine that has the memory."""
    wanted = CHUNK_BYTES // (workers * itemsize)
    return max(LEAST_CHUNK_ENTRIES, wanted // LEAST_CHUNK_ENTRIES * LEAST_CHUNK_ENTRIES)
