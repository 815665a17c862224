"""How long one worker takes for its block when nothing delays it, phase by phase."""

from __future__ import annotations

from dataclasses import dataclass

from blockstore.memory import PREFETCH
from coordinator.platform import Platform
from coordinator.start_rate import LONGEST
from coordinator.tree import TREE_FROM


@dataclass(frozen=True)
class BlockWork:
    """The work of one worker: a coded block of (rows, columns) in `objects` tiles, times x of
    (columns, k).

    `itemsize` is bytes per coded entry, `compute_itemsize` bytes per entry of the product (4 or 8).
    """

    rows: int
    columns: int
    itemsize: int
    objects: int
    k: int
    compute_itemsize: int

    @property
    def block_bytes(self) -> int:
        """Bytes of the coded block in S3."""
        return self.rows * self.columns * self.itemsize

    @property
    def x_bytes(self) -> int:
        """Bytes of x."""
        return self.columns * self.k * self.compute_itemsize

    @property
    def answer_bytes(self) -> int:
        """Bytes of one answer."""
        return self.rows * self.k * self.compute_itemsize


@dataclass(frozen=True)
class TaskTime:
    """Seconds of one undelayed task. `read` and `multiply` overlap: `seconds` is less than the
    sum."""

    read: float
    multiply: float
    write: float
    seconds: float


def task_time(work: BlockWork, memory_mb: int, workers: int, platform: Platform) -> TaskTime:
    """Seconds of one task of `work` on a function of `memory_mb`, `workers` of them at the same
    time.

    The next tile is fetched while the current one is multiplied. All workers together read no
    faster than S3's request rate; those that a tree invokes begin at a rate that allows for that,
    up to the `LONGEST` launch.
    A worker that begins late is behind anyway: its look for the stop marker is not charged.
    """
    tiles = max(1, work.objects)
    fair_share = workers / platform.s3_gets_per_second
    if workers >= TREE_FROM:
        fair_share = max(0.0, fair_share - LONGEST / tiles)
    waiting = platform.s3_request_seconds / min(tiles, PREFETCH)  # PREFETCH requests at a time
    read_tile = max(waiting + work.block_bytes / tiles / platform.s3_read_rate, fair_share)
    vcpus = platform.vcpus(memory_mb)
    converted = work.rows * work.columns * work.compute_itemsize
    stream = (work.block_bytes + converted) / (platform.stream_rate * vcpus)
    product = 2.0 * work.rows * work.columns * work.k / (platform.product_rate * vcpus)
    multiply_tile = max(stream, product) / tiles
    tiled = read_tile + (tiles - 1) * max(read_tile, multiply_tile) + multiply_tile
    read_x = platform.s3_request_seconds + work.x_bytes / platform.s3_read_rate
    write = platform.s3_request_seconds + work.answer_bytes / platform.s3_write_rate
    seconds = read_x + tiled + write + platform.worker_overhead_seconds
    return TaskTime(
        read=read_x + tiles * read_tile,
        multiply=tiles * multiply_tile,
        write=write,
        seconds=seconds,
    )


def finish_seconds(
    work: BlockWork, data_blocks: int, platform: Platform, answers: int = 1, spread: float = 0.0
) -> float:
    """Seconds from the decisive answer to the result in S3: listing, decoding, result, and the last
    answer, or those of all `answers` that did not come through the coordinator's link in the
    `spread` seconds over which they arrived."""
    entries = data_blocks * work.rows * work.k
    decode = 8 * entries / platform.decode_rate  # in float64
    late = max(work.answer_bytes, answers * work.answer_bytes - spread * platform.client_rate)
    result = entries * work.compute_itemsize
    return 3.0 * platform.s3_request_seconds + (late + result) / platform.client_rate + decode
