"""What the platform cannot do is refused before anything is written or invoked."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from blockstore.memory import PREFETCH, worker_memory
from blockstore.subtasks import MOST_WORKERS
from blockstore.tasks import WorkerTask
from coordinator.budget import FUNCTION_SHARE, least_memory
from coordinator.form import AnswerForm
from coordinator.platform import MB, Platform
from coordinator.refusals import PlanRefused
from coordinator.task_time import BlockWork, task_time


def check_fits(
    task: WorkerTask, work: BlockWork, memory_mb: int, timeout: float, platform: Platform
) -> None:
    """Raise PlanRefused unless settings, event, memory and time of a worker are within limits."""
    low, high = platform.memory_min_mb, platform.memory_max_mb
    if not low <= memory_mb <= high:
        nearest = min(max(memory_mb, low), high)
        raise PlanRefused(
            "worker_memory_mb", memory_mb, nearest, f"Lambda has {low} to {high:,} MB"
        )
    most = platform.timeout_max
    if not 1 <= timeout <= most:
        allowed = min(max(timeout, 1.0), most)
        raise PlanRefused("worker_timeout", timeout, allowed, f"Lambda has 1 to {most:g} s")
    event, limit = event_bytes(task), platform.event_max_bytes
    if event > limit:
        raise PlanRefused("event", event, limit, "more bytes than an asynchronous event may have")
    _check_memory(task, memory_mb, platform)
    _check_time(work, task.workers, memory_mb, timeout, platform)


def check_coordinator(
    form: AnswerForm, x_bytes: int, k: int, memory_mb: int, platform: Platform
) -> None:
    """Raise PlanRefused unless a coordinator function of `memory_mb` can make the product at all.

    Where answers and product do not fit, it leaves them in S3 and holds x and one row of every
    block (`coordinator.budget`): only a very wide x of k columns, or very many answers, is too
    much.
    """
    least = least_memory(form, x_bytes) / FUNCTION_SHARE
    needed = math.ceil(least / MB)
    if needed <= memory_mb:
        return
    count = form.shares.count
    reason = f"the coordinator needs {needed:,} MB for x and a row of each of {count} answers"
    if needed <= platform.memory_max_mb:
        raise PlanRefused("coordinator_memory_mb", memory_mb, needed, reason)
    fixed = least_memory(replace(form, layout=replace(form.layout, block_columns=0)), 0)
    room = platform.memory_max_mb * MB * FUNCTION_SHARE - fixed
    columns = int(room / ((least * FUNCTION_SHARE - fixed) / k))
    reason += f", Lambda has at most {platform.memory_max_mb:,} MB (or run it with on='local')"
    raise PlanRefused("columns of x", k, max(0, columns) or None, reason)


def event_bytes(task: WorkerTask) -> int:
    """Bytes of the event that invokes a worker."""
    return len(json.dumps(task.to_event()).encode())


def _check_memory(task: WorkerTask, memory_mb: int, platform: Platform) -> None:
    needed = math.ceil(worker_memory(task) / MB)
    if needed <= memory_mb:
        return
    reason = f"a worker needs {needed:,} MB for x, its answer and its tiles"
    if needed <= platform.memory_max_mb:
        raise PlanRefused("worker_memory_mb", memory_mb, needed, reason)
    reason += f", Lambda has at most {platform.memory_max_mb:,} MB"
    limit = platform.memory_max_mb * MB
    columns = _most_columns(task, limit)
    if columns:
        raise PlanRefused("columns of x", task.x_shape[1], columns, reason)
    entries = task.tile_rows * task.tile_columns
    bare = replace(task, x_shape=(task.columns,), tile_rows=1, tile_columns=1)
    room = (limit - worker_memory(bare)) // ((PREFETCH + 2) * np.dtype(task.dtype).itemsize)
    if room > 0:
        raise PlanRefused("entries of a tile", entries, room, reason)
    raise PlanRefused("matrix columns", task.columns, None, reason)


def _most_columns(task: WorkerTask, limit: int) -> int:
    """The largest k with which a worker fits in `limit` bytes, 0 if even one column does not."""

    def fits(k: int) -> bool:
        return worker_memory(replace(task, x_shape=(task.columns, k))) <= limit

    return _largest(task.x_shape[1] if len(task.x_shape) == 2 else 1, fits)


def _check_time(
    work: BlockWork, workers: int, memory_mb: int, timeout: float, platform: Platform
) -> None:
    seconds = task_time(work, memory_mb, workers, platform).seconds
    if seconds <= timeout:
        return
    reason = f"a block takes about {seconds:,.0f} s"
    if seconds <= platform.timeout_max:
        raise PlanRefused("worker_timeout", timeout, math.ceil(seconds), reason)
    reason += f", Lambda has at most {platform.timeout_max:g} s"

    def in_time(changed: BlockWork, count: int) -> bool:
        return task_time(changed, memory_mb, count, platform).seconds <= platform.timeout_max

    def with_rows(rows: int) -> BlockWork:
        return replace(work, rows=rows, objects=max(1, -(-work.objects * rows // work.rows)))

    more = workers
    while more < MOST_WORKERS:
        more *= 2
        if in_time(with_rows(-(-work.rows * workers // more)), more):
            raise PlanRefused("workers", workers, more, reason)
    columns = _largest(work.k, lambda k: in_time(replace(work, k=k), workers))
    if columns:
        raise PlanRefused("columns of x", work.k, columns, reason)
    rows = _largest(work.rows, lambda count: in_time(with_rows(count), workers))
    raise PlanRefused("rows of a block", work.rows, rows or None, reason)


def _largest(high: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `high` that fits, 0 if none does; what is smaller fits as well."""
    low = 0
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
