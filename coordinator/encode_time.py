"""How long encoding takes and what it costs: on one machine, and by encode functions on Lambda."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from blockstore.manifest import Manifest
from blockstore.memory import RUNTIME_BYTES
from coordinator.cost import Cost, Usage, cost
from coordinator.platform import MB, Platform
from coordinator.prices import Prices
from coordinator.storage import LIST_PAGE, Stored

__all__ = ["EncodeOnLambda", "encode_on_lambda", "encode_seconds"]

MB_PER_GB = 1_024


@dataclass(frozen=True)
class EncodeOnLambda:
    """`functions` of `memory_mb`, each busy for `function_seconds`; `seconds` until the last has
    ended, their ramp and waves included."""

    functions: int
    memory_mb: int
    function_seconds: float
    seconds: float
    usage: Usage
    cost: Cost

    def to_json(self) -> dict[str, Any]:
        """Plain JSON of every figure."""
        return {
            "functions": self.functions,
            "memory_mb": self.memory_mb,
            "function_seconds": self.function_seconds,
            "seconds": self.seconds,
            "usage": self.usage.to_json(),
            "cost": self.cost.to_json(),
        }


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


def encode_on_lambda(
    manifest: Manifest, kept: Stored, prices: Prices, platform: Platform
) -> EncodeOnLambda | None:
    """One function for each range of tiles: it reads that range of all s source blocks from S3,
    and writes that tile of all N coded blocks.

    function = 2 s requests and 2 source / t bytes read, stored / t bytes made and written, N
    requests; t functions, a pass before them that checks the source. None if N tiles are more than
    the memory of a function, or a function would take longer than its limit.
    """
    tiles = manifest.tiling.count
    memory_mb = math.ceil((RUNTIME_BYTES + manifest.blocks * kept.tile_bytes * 1.25) / MB)
    if memory_mb > platform.memory_max_mb:
        return None
    memory_mb = max(memory_mb, math.ceil(platform.memory_per_vcpu_mb))
    source_bytes = manifest.rows * manifest.columns * np.dtype(manifest.source_dtype).itemsize
    threads, request = platform.transfer_threads, platform.s3_request_seconds
    read = 2 * (
        manifest.data_blocks * request / threads + source_bytes / tiles / platform.s3_read_rate
    )
    share = kept.storage_bytes / tiles
    made = share / platform.encode_rate / min(1.0, platform.vcpus(memory_mb))
    written = manifest.blocks * request / threads + share / platform.s3_write_rate
    busy = read + made + written + platform.worker_overhead_seconds
    if busy > platform.timeout_max:
        return None
    waves = -(-tiles // platform.concurrency)
    cold = min(tiles, platform.concurrency) - platform.ramp_burst
    usage = Usage(
        puts=kept.objects + 1,
        gets=2 * manifest.data_blocks * tiles,
        lists=1 + kept.objects // LIST_PAGE,
        invokes=tiles,
        worker_gb_seconds=tiles * busy * memory_mb / MB_PER_GB,
    )
    return EncodeOnLambda(
        functions=tiles,
        memory_mb=memory_mb,
        function_seconds=busy,
        seconds=waves * busy + max(0.0, cold / platform.ramp_rate) + platform.invoke_seconds,
        usage=usage,
        cost=cost(usage, prices),
    )
