"""How long encoding takes and what it costs: on one machine, and by encode functions on Lambda."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from blockstore.encode_work import EncodeWork, PassWork
from coordinator.cost import Cost, Usage, cost
from coordinator.platform import MB, Platform
from coordinator.prices import Prices
from coordinator.refusals import PlanRefused
from coordinator.storage import Stored

__all__ = ["EncodeOnLambda", "encode_on_lambda", "encode_seconds"]

MB_PER_GB = 1_024
LAST_SECONDS = 15.0  # that an encode function keeps for what comes after its last tile


@dataclass(frozen=True)
class EncodeOnLambda:
    """Both passes by encode functions, as they are deployed. Sizes in bytes, times in seconds.

    `scan_calls` look at the matrix, `write_calls` write its `tiles` of `tile_bytes`; the largest of
    them takes `scan_seconds`, `write_seconds`; `seconds` until the last has ended. `spool_bytes`:
    of a function's disk; `peak_bytes`: of its memory; `full_memory_mb`: with which tiles would be
    of full size and in memory. `read`, `written`: by all functions.
    """

    memory_mb: int
    disk_mb: int
    scan_calls: int
    write_calls: int
    tiles: int
    tile_bytes: int
    peak_bytes: int
    spool_bytes: int
    full_memory_mb: int
    scan_seconds: float
    write_seconds: float
    seconds: float
    bytes_read: int
    bytes_written: int
    usage: Usage
    cost: Cost

    def to_json(self) -> dict[str, Any]:
        """Plain JSON of every figure."""
        figures = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return figures | {"usage": self.usage.to_json(), "cost": self.cost.to_json()}


def encode_seconds(source_bytes: int, kept: Stored, platform: Platform) -> float:
    """Seconds on one machine: a pass that checks the source, then one in which reading, the
    transform and the upload overlap.

    source / disk rate + max(source / disk rate, stored / encode rate, stored / client rate)
    """
    read = source_bytes / platform.disk_rate
    coded, sent = (
        kept.storage_bytes / platform.encode_rate,
        kept.storage_bytes / platform.client_rate,
    )
    return read + max(read, coded, sent)


def encode_on_lambda(work: EncodeWork, prices: Prices, platform: Platform) -> EncodeOnLambda:
    """What the functions that `work` counts take and cost; the formulas are in docs/cost.md.

    Raises `PlanRefused` if a single tile takes longer than Lambda lets a function run.
    """
    memory_mb = work.memory // MB
    leaf, (made, sent) = _leaf_seconds(work, platform), _tile_seconds(work, platform)
    if made + sent > platform.timeout_max - LAST_SECONDS:
        raise PlanRefused(
            "a tile of all blocks",
            f"{made + sent:,.0f} s",
            None,
            f"a function has {platform.timeout_max - LAST_SECONDS:g} s: take fewer blocks",
        )
    further = max(made, sent) if work.stages > 1 else made + sent
    at_once = min(work.concurrency, platform.concurrency)
    cold = min(max(work.scan.calls, work.write.calls), at_once)
    colder = work.write.calls > work.scan.calls and work.scan.calls < at_once
    scan = _pass(work.scan, leaf, leaf, platform.start_seconds, at_once, platform)
    start = platform.start_seconds if colder else 0.0
    write = _pass(work.write, made + sent, further, start, at_once, platform)
    busy = scan.busy + write.busy + cold * platform.start_seconds
    usage = Usage(
        puts=work.write.puts + work.puts,
        gets=work.scan.gets + work.write.gets + work.gets,
        lists=work.lists,
        invokes=work.calls,
        worker_gb_seconds=busy * memory_mb / MB_PER_GB,
    )
    return EncodeOnLambda(
        memory_mb=memory_mb,
        disk_mb=work.disk // MB,
        scan_calls=work.scan.calls,
        write_calls=work.write.calls,
        tiles=work.write.units,
        tile_bytes=work.tile_bytes,
        peak_bytes=work.peak_bytes,
        spool_bytes=work.spool_bytes,
        full_memory_mb=work.full_memory // MB,
        scan_seconds=scan.longest,
        write_seconds=write.longest,
        seconds=scan.seconds + write.seconds,
        bytes_read=work.scan.read + work.write.read,
        bytes_written=work.write.written,
        usage=usage,
        cost=cost(usage, prices),
    )


def _leaf_seconds(work: EncodeWork, platform: Platform) -> float:
    """A leaf read, checked and hashed, other leaves beside it: by requests, the link, or the
    processors, whichever takes longest."""
    size = work.scan.read / work.scan.units
    waiting = work.scan.gets_of_unit * platform.s3_request_seconds / work.readers
    checked = size / platform.scan_rate / platform.vcpus(work.memory // MB)
    return max(waiting + size / platform.s3_read_rate, checked)


def _tile_seconds(work: EncodeWork, platform: Platform) -> tuple[float, float]:
    """Seconds in which a tile of all blocks is read and transformed, and in which it is sent."""
    size = work.write.written / work.write.units
    processors = min(float(work.encoders), platform.vcpus(work.memory // MB))
    spooled = size / platform.disk_rate if work.spool_bytes else 0.0
    made = work.write.gets_of_unit * platform.s3_request_seconds / work.readers
    made += work.write.read / work.write.units / platform.s3_read_rate
    made += size / platform.encode_rate / processors + spooled
    sent = work.blocks * platform.s3_request_seconds / work.uploaders
    sent += size / platform.s3_write_rate + spooled
    return made, sent


@dataclass(frozen=True)
class _Pass:
    """Seconds: of the longest call, until the last has ended, and of all calls together."""

    longest: float
    seconds: float
    busy: float


def _pass(
    work: PassWork, first: float, further: float, start: float, at_once: int, platform: Platform
) -> _Pass:
    """Calls of `share` units, the first of which takes `first` seconds; `start` of a cold function
    is not counted as busy. S3 takes only so many requests a second for one prefix."""
    opening = work.opening * platform.s3_request_seconds + platform.worker_overhead_seconds
    opening += first - further
    longest = opening + work.share * further
    waves = -(-work.calls // at_once)
    seconds = start + platform.invoke_seconds + waves * longest
    floor = max(work.gets / platform.s3_gets_per_second, work.puts / platform.s3_puts_per_second)
    slower = max(1.0, floor / seconds)
    busy = (work.calls * opening + work.units * further) * slower
    return _Pass(longest * slower, seconds * slower, busy)
