"""What the platform cannot do with a product of two coded factors is refused beforehand."""

from __future__ import annotations

import json
import math

from blockstore.memory import RUNTIME_BYTES, pair_memory
from blockstore.pair_tasks import PairTask
from blockstore.pairs import MatrixPair
from coordinator.pair_time import PairWork
from coordinator.platform import MB, Platform
from coordinator.refusals import PlanRefused
from coordinator.task_time import task_time

__all__ = ["check_pair_coordinator", "check_pair_fits"]


def check_pair_fits(
    task: PairTask, work: PairWork, memory_mb: int, timeout: float, platform: Platform
) -> None:
    """Raise `PlanRefused` unless event, memory and time of a worker are within the limits."""
    event = len(json.dumps(task.to_event()).encode())
    if event > platform.event_max_bytes:
        raise PlanRefused("event", event, platform.event_max_bytes, "too long to invoke with")
    needed = math.ceil(pair_memory(task) / MB)
    if needed > memory_mb:
        reason = (
            f"a worker needs {needed:,} MB for its answer of {task.result_shape[0]} x "
            f"{task.result_shape[1]}, its tiles and the rows it holds"
        )
        if needed <= platform.memory_max_mb:
            raise PlanRefused("worker_memory_mb", memory_mb, needed, reason)
        reason += f", Lambda has at most {platform.memory_max_mb:,} MB: take a larger grid"
        raise PlanRefused("grid", task.workers, None, reason)
    seconds = task_time(work, memory_mb, task.workers, platform).seconds
    if seconds > timeout:
        reason = f"a worker takes about {seconds:,.0f} s"
        if seconds <= platform.timeout_max:
            raise PlanRefused("worker_timeout", timeout, math.ceil(seconds), reason)
        larger = math.ceil(task.workers * seconds / platform.timeout_max)
        reason += f", Lambda has at most {platform.timeout_max:g} s: about {larger:,} workers would"
        raise PlanRefused("grid", task.workers, None, reason)


def check_pair_coordinator(
    pair: MatrixPair, work: PairWork, memory_mb: int, platform: Platform
) -> None:
    """It holds every answer, and while decoding three arrays of the product's size in float64."""
    product = 8 * pair.shape[0] * pair.shape[1]
    held = RUNTIME_BYTES + pair.workers * work.answer_bytes + 3 * product
    needed = math.ceil(held / MB)
    if needed > memory_mb:
        fits = needed if needed <= platform.memory_max_mb else None
        reason = (
            f"the coordinator needs {needed:,} MB for {pair.workers} answers and their decoding; "
            "on='local' has no such limit"
        )
        raise PlanRefused("coordinator_memory_mb", memory_mb, fits, reason)
