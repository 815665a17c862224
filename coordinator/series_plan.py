"""Which way to serve a series of products pays: an invocation per worker and product, or residents.

A resident saves the block's reading and the invocation, and is billed for the time between products
as well. So it is faster for every gap between products, and cheaper up to a certain one.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from blockstore.manifest import Manifest
from blockstore.memory import resident_memory
from blockstore.sessions import SHORT_X
from coordinator.expected_time import answer_moments
from coordinator.platform import MB, Platform
from coordinator.prices import Prices
from coordinator.refusals import PlanRefused
from coordinator.run_plan import all_blocks, block_work, planned_task
from coordinator.run_usage import MB_PER_GB
from coordinator.starts import planned_looks
from coordinator.task_time import task_time

__all__ = ["SeriesPlan", "check_resident", "plan_series"]

NEAR_POLLS = 3  # looks about the time at which the next announcement is due
FAR_POLLS = 0.8 / 0.5  # looks a second in the 80 % of the gap before that


@dataclass(frozen=True)
class SeriesPlan:
    """Planned figures of one product of a series, without delays and cold starts, for N workers.

    invoke_seconds, resident_seconds : of a worker's task; invoke_dollars : workers, requests and
    invocations of a product; the same for residents is `resident_dollars(gap)`. break_even : the
    gap in seconds, from the beginning of one product to that of the next, up to which residents are
    cheaper. resident_memory : predicted peak in bytes, of worker_memory_mb MB.
    """

    workers: int
    worker_memory_mb: int
    resident_memory: int
    invoke_seconds: float
    resident_seconds: float
    invoke_dollars: float
    dollars_per_second: float
    dollars_per_product: float
    block_bytes: int
    x_bytes: int

    def resident_dollars(self, gap: float) -> float:
        """Dollars of a product every `gap` seconds: life, looks for announcements, reading x."""
        return max(gap, self.resident_seconds) * self.dollars_per_second + self.dollars_per_product

    @property
    def break_even(self) -> float:
        """Seconds; 0 if residents never are cheaper."""
        gap = (self.invoke_dollars - self.dollars_per_product) / self.dollars_per_second
        return gap if gap >= self.resident_seconds else 0.0

    @property
    def fits(self) -> bool:
        """Whether a worker's blocks fit into its memory."""
        return self.resident_memory <= self.worker_memory_mb * MB

    def cheaper(self, gap: float) -> str:
        """The mode that costs less at this gap, "resident" or "invoke"."""
        return "resident" if self.fits and gap <= self.break_even else "invoke"

    def to_json(self) -> dict[str, Any]:
        """Plain JSON of every figure."""
        return asdict(self) | {"break_even": self.break_even, "fits": self.fits}

    def __str__(self) -> str:
        text = (
            f"a task takes about {self.invoke_seconds:.2f} s when invoked and "
            f"{self.resident_seconds:.2f} s when resident"
        )
        if not self.fits:
            needed = math.ceil(self.resident_memory / MB)
            return f"{text}, for which a worker needs {needed:,} MB"
        return f"{text}, which is cheaper up to {self.break_even:.1f} s from product to product"


def plan_series(
    manifest: Manifest,
    x_shape: tuple[int, ...],
    x_dtype: np.dtype[Any] | str,
    *,
    worker_memory_mb: int,
    prices: Prices,
    platform: Platform | None = None,
) -> SeriesPlan:
    """Plan a series of products. Raises PlanRefused for an x that does not fit the matrix."""
    platform = platform or Platform()
    task = planned_task(manifest, x_shape, x_dtype)
    work = all_blocks(block_work(task), task.subtasks)
    workers, gigabytes = manifest.workers, worker_memory_mb / MB_PER_GB
    moments = answer_moments(block_work(task), worker_memory_mb, manifest.shares, platform)
    looks = planned_looks(moments, 1, platform)
    time = task_time(work, worker_memory_mb, workers, platform)
    stored_x = math.prod(task.x_shape) * np.dtype(task.x_dtype).itemsize
    x_gets = 0 if stored_x <= SHORT_X else 1  # a short x comes with the announcement
    read_x = x_gets * platform.s3_request_seconds + work.x_bytes / platform.s3_read_rate
    look = platform.s3_request_seconds
    resident = look + read_x + time.multiply + time.write + platform.worker_overhead_seconds
    get, put = prices.s3_thousand_gets / 1e3, prices.s3_thousand_puts / 1e3
    second = gigabytes * prices.lambda_gb_second
    invoked = time.seconds * second + prices.lambda_million_requests / 1e6
    invoked += (work.objects + 1) * get + looks * put  # a LIST costs what a PUT does
    return SeriesPlan(
        workers=workers,
        worker_memory_mb=worker_memory_mb,
        resident_memory=resident_memory(task),
        invoke_seconds=platform.invoke_seconds + time.seconds,
        resident_seconds=resident,
        invoke_dollars=workers * invoked,
        dollars_per_second=workers * (second + FAR_POLLS * get),
        dollars_per_product=workers * (x_gets + NEAR_POLLS) * get + put,
        block_bytes=work.block_bytes,
        x_bytes=work.x_bytes,
    )


def check_resident(plan: SeriesPlan, concurrency: int, platform: Platform | None = None) -> None:
    """Raise PlanRefused unless all workers can stay at a time and keep their blocks in memory.

    concurrency : workers that may be under way at once
    """
    if plan.workers > concurrency:
        reason = f"residents stay, and {concurrency:,} workers run at once: use mode='invoke'"
        raise PlanRefused("workers", plan.workers, concurrency, reason)
    if plan.fits:
        return
    platform = platform or Platform()
    needed = math.ceil(plan.resident_memory / MB)
    reason = f"a resident worker keeps {plan.block_bytes / MB:,.0f} MB of blocks: {needed:,} MB"
    fits = needed if needed <= platform.memory_max_mb else None
    more = "use mode='invoke'" + ("" if fits else ", or encode for more workers")
    raise PlanRefused("worker_memory_mb", plan.worker_memory_mb, fits, f"{reason} ({more})")
