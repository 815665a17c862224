"""What encoding a matrix will store, need and cost, before a byte of it is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from blockstore.manifest import Manifest
from blockstore.tiling import RESERVE_BYTES, choose_tiling, least_memory
from coordinator.choose import CodeChoice, checked_matrix, choose_code
from coordinator.cost import Cost, Usage, cost
from coordinator.default_code import AUTO
from coordinator.encode_time import EncodeOnLambda, encode_seconds
from coordinator.expected_time import full_range, planned_shares
from coordinator.platform import Platform
from coordinator.prices import Prices, load_prices
from coordinator.refusals import PlanRefused
from coordinator.storage import HEADER_BYTES, Stored, stored
from polarcodes.delays import DelayModel

BUFFER_SHARE = 5 / 8  # of the memory, at least, is left to tiles beside reads and uploads


@dataclass(frozen=True)
class EncodingPlan:
    """Everything that encoding would make. Sizes in bytes, times in seconds.

    `manifest` describes the coded matrix as encoding would write it (placeholder digests), so that
    a run can be planned on it. `spool_bytes`: disk for tiles that do not fit in memory, 0 when they
    do. `encode_seconds`: on one machine with the source on its disk, of which `upload_seconds` is
    the transfer at the platform's client rate. `on_lambda`: by encode functions, if whoever plans
    knows them, None where they cannot, and `not_on_lambda` why.
    """

    choice: CodeChoice
    manifest: Manifest
    source_bytes: int
    stored: Stored
    memory: int
    spool_bytes: int
    upload_seconds: float
    encode_seconds: float
    usage: Usage
    encode_cost: Cost
    storage_month: Cost
    on_lambda: EncodeOnLambda | None = None
    not_on_lambda: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON of every figure."""
        manifest, choice = self.manifest, self.choice
        return {
            "shape": list(manifest.shape),
            "source_dtype": manifest.source_dtype,
            "code": choice.code,
            "options": dict(choice.options),
            "workers": choice.workers,
            "subtasks": manifest.shares.per_worker,
            "data_blocks": choice.data_blocks,
            "redundancy": choice.redundancy,
            "explanation": list(choice.explanation),
            "block_rows": manifest.block_rows,
            "block_dtype": manifest.dtype,
            "tile_rows": manifest.tiling.tile_rows,
            "tile_columns": manifest.tiling.tile_columns,
            "source_bytes": self.source_bytes,
            **asdict(self.stored),
            "memory": self.memory,
            "spool_bytes": self.spool_bytes,
            "upload_seconds": self.upload_seconds,
            "encode_seconds": self.encode_seconds,
            "encode_on_lambda": self.on_lambda.to_json() if self.on_lambda else None,
            "not_on_lambda": self.not_on_lambda,
            "usage": self.usage.to_json(),
            "encode_cost": self.encode_cost.to_json(),
            "storage_month": self.storage_month.to_json(),
            "expected_time": {**asdict(choice.time), "pays": choice.time.pays},
        }


def plan_encoding(
    shape: tuple[int, int],
    dtype: np.dtype[Any] | str,
    *,
    workers: int | None = None,
    data_blocks: int | None = None,
    redundancy: float | None = None,
    code: str = AUTO,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    subtasks: int = 1,
    per_object: int = 1,
    memory: int = 1 << 30,
    spool: bool = True,
    order: str = "C",
    value_range: tuple[float, float] | None = None,
    name: str = "planned",
    worker_memory_mb: int = 1_769,
    delays: DelayModel | None = None,
    prices: Prices | None = None,
    platform: Platform | None = None,
) -> EncodingPlan:
    """Plan the encoding of a matrix of `shape` (n, d) and `dtype`.

    `memory` (bytes), `spool` and `order` are the encoder's. `value_range` is the range of the data
    when it is known; without it integers are taken to use their whole dtype, which decides the
    dtype of the coded blocks. What is not given of N and s is chosen (`coordinator.choose`). Raises
    PlanRefused naming the number to change.
    """
    platform = platform or Platform()
    prices = prices or load_prices()
    source = checked_matrix(shape, dtype)
    choice = choose_code(
        shape,
        source,
        workers=workers,
        data_blocks=data_blocks,
        redundancy=redundancy,
        code=code,
        options=options,
        subtasks=subtasks,
        worker_memory_mb=worker_memory_mb,
        delays=delays,
        platform=platform,
    )
    built = choice.make(seed)
    workers, data_blocks = built.workers, built.data_blocks
    coded = built.encoded_dtype(source, *(value_range or full_range(source)))
    rows = -(-shape[0] // data_blocks)
    if memory < least_memory(workers):
        raise PlanRefused(
            "memory", memory, least_memory(workers), f"too little to encode {workers} blocks"
        )
    if subtasks > 1 and data_blocks > shape[0]:
        most = shape[0] // choice.data_blocks
        raise PlanRefused("subtasks", subtasks, most or None, "more data blocks than rows")
    tiling = choose_tiling(rows, shape[1], coded.itemsize, workers, memory, spool, order=order)
    manifest = Manifest(
        name=name,
        created="planned",
        rows=shape[0],
        columns=shape[1],
        source_dtype=source.str,
        block_rows=rows,
        dtype=coded.str,
        tiling=tiling,
        code=built.to_manifest(),
        encoding="0" * 16,
        source_digest="planned",
        source="planned",
        subtasks=planned_shares(choice.workers, subtasks, per_object),
    )
    return _figures(choice, manifest, memory, prices, platform)


def _figures(
    choice: CodeChoice, manifest: Manifest, memory: int, prices: Prices, platform: Platform
) -> EncodingPlan:
    kept = stored(manifest)
    buffer = manifest.blocks * (kept.tile_bytes - HEADER_BYTES)
    source_bytes = manifest.rows * manifest.columns * np.dtype(manifest.source_dtype).itemsize
    return EncodingPlan(
        choice=choice,
        manifest=manifest,
        source_bytes=source_bytes,
        stored=kept,
        memory=memory,
        spool_bytes=buffer if buffer > BUFFER_SHARE * (memory - RESERVE_BYTES) else 0,
        upload_seconds=kept.storage_bytes / platform.client_rate,
        encode_seconds=encode_seconds(source_bytes, kept, platform),
        usage=kept.encode_usage,
        encode_cost=cost(kept.encode_usage, prices),
        storage_month=kept.month(prices),
    )
