"""What encoding by the deployed function will take: counted by the encoder, priced by the
planner."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from polarlambda.encode_function import CONCURRENCY, DEPLOYED_DISK_MB, DEPLOYED_MEMORY_MB
from polarlambda.errors import BadInput

if TYPE_CHECKING:
    from coordinator.planning import EncodingPlan, Platform, Prices

LEAST_MB, MOST_MB = 512, 10_240  # EncodeMemory and EncodeDisk of template.yaml


def with_functions(
    encoding: EncodingPlan,
    prices: Prices,
    platform: Platform,
    memory_mb: int | None = None,
    disk_mb: int | None = None,
) -> EncodingPlan:
    """The plan with `on_lambda`, for encode functions of `memory_mb` and `disk_mb` (default: the
    template's), or with the reason why they cannot. Raises `BadInput`."""
    import numpy as np

    from coordinator.encode_time import encode_on_lambda
    from coordinator.refusals import PlanRefused
    from encoder.errors import EncodeError
    from encoder.remote_plan import plan_remote

    memory = _within("encode memory", memory_mb, DEPLOYED_MEMORY_MB)
    disk = _within("encode disk", disk_mb, DEPLOYED_DISK_MB)
    manifest = encoding.manifest
    try:
        work = plan_remote(
            manifest.shape,
            np.dtype(manifest.source_dtype),
            np.dtype(manifest.dtype),
            blocks=manifest.blocks,
            data_blocks=manifest.data_blocks,
            order=manifest.tiling.order,
            memory=memory << 20,
            disk=disk << 20,
            concurrency=CONCURRENCY,
            processors=platform.processors(memory),
        )
        return replace(encoding, on_lambda=encode_on_lambda(work, prices, platform))
    except (EncodeError, PlanRefused, ValueError) as error:
        return replace(encoding, not_on_lambda=str(error))


def _within(what: str, given: int | None, deployed: int) -> int:
    if given is None:
        return deployed
    if not LEAST_MB <= given <= MOST_MB:
        raise BadInput(f"{what} must be {LEAST_MB} to {MOST_MB:,} MB, got {given}")
    return given
