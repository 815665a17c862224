"""How fast a tree of invocations may start workers.

It could start a fleet faster than S3 answers it: one prefix has 5,500 GETs and 3,500 PUTs a second,
and all workers of a run read the same matrix and write into the same run. So branch after branch is
asked, at the rate at which the requests of those that begin are answered.
"""

from __future__ import annotations

import math

from blockstore.memory import PREFETCH
from blockstore.pair_tasks import PairTask
from blockstore.tasks import WorkerTask
from coordinator.platform import Platform

__all__ = ["LONGEST", "SHARE", "start_rate", "task_rate"]

SHARE = 0.9  # of a prefix's rate that a launch may ask for: workers do not begin evenly
LONGEST = 60.0  # seconds of a launch: S3 gives a prefix more when it has been busy for that long


def start_rate(workers: int, tiles: int, x_gets: int, objects: int, platform: Platform) -> float:
    """Workers a second that may begin so that 0.9 of a prefix's requests suffice them; inf if all
    `workers` may begin at once.

    min(0.9 GETs a second / tiles, 0.9 GETs / GETs of x, 0.9 PUTs / objects), of those that all of
    them could exceed in a second. Tiles lie under matrices/, x and answers under runs/: those are
    two prefixes. A worker has `PREFETCH` tiles on their way at a time. No launch takes longer than
    a minute.
    """
    gets, puts = SHARE * platform.s3_gets_per_second, SHARE * platform.s3_puts_per_second
    asked = min(tiles, PREFETCH / platform.s3_request_seconds)
    rates = []
    if workers * asked > gets:
        rates.append(gets / tiles)
    if workers * x_gets > gets:
        rates.append(gets / x_gets)
    if workers * objects > puts:
        rates.append(puts / objects)
    return max(min(rates), workers / LONGEST) if rates else math.inf


def task_rate(task: object, workers: int, platform: Platform | None = None) -> float:
    """The same for `workers` of a run one of whose tasks this is; no limit if it is none."""
    platform = platform or Platform()
    if isinstance(task, PairTask):
        return start_rate(workers, task.tiles_read, 0, 1, platform)
    if isinstance(task, WorkerTask):
        tiles = task.tiling.count * len(task.todo or range(task.subtasks))
        return start_rate(workers, tiles, 1, len(task.objects), platform)
    return math.inf
