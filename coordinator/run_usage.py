"""What a planned product uses: its workers, and its coordinator until the decisive answer."""

from __future__ import annotations

import math

from blockstore.subtasks import Subtasks
from coordinator.cost import Usage
from coordinator.expected_time import ExpectedTime, answer_moments, starts_of
from coordinator.machine import PUBLISH_INTERVAL
from coordinator.pace import FASTEST
from coordinator.platform import Platform
from coordinator.starts import planned_looks
from coordinator.storage import LIST_PAGE
from coordinator.task_time import BlockWork
from polarcodes.delays import DelayModel

__all__ = ["MB_PER_GB", "coordinator_usage", "worker_usage"]

MB_PER_GB = 1_024


def worker_usage(
    work: BlockWork,
    shares: Subtasks,
    time: ExpectedTime,
    delays: DelayModel,
    memory_mb: int,
    platform: Platform,
) -> Usage:
    """All N workers run to their end: late ones are billed too, and delays are taken as billed."""
    workers, tasks = shares.workers, shares.per_worker
    moments = answer_moments(work, memory_mb, shares, platform)
    rate = starts_of(work, shares, platform)
    return Usage(
        puts=workers * tasks // shares.per_object,
        gets=workers * (tasks * work.objects + 1),
        lists=planned_looks(moments, workers, platform, rate, delays),
        invokes=workers,
        worker_gb_seconds=workers * memory_mb / MB_PER_GB * (time.task + delays.mean),
    )


def coordinator_usage(shares: Subtasks, time: ExpectedTime) -> Usage:
    """run.json (twice: asked, decisive set), x, stop marker, report (json, html), status;
    estimates. The result is another's (`coordinator.decode_plan`).

    Listings are counted at their usual pace far from the decisive answer.
    """
    answers = shares.count // shares.per_object
    published = min(answers, int(time.coded / PUBLISH_INTERVAL))
    pages = 1 + answers // LIST_PAGE
    listings = math.ceil(time.coded / (4 * FASTEST))
    return Usage(puts=7 + 2 * published, gets=answers + 2, lists=listings * pages)
