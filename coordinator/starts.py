"""When workers begin: how fast they are invoked, how fast Lambda starts environments, and who has
to wait for one that is free.

Invocations leave a client in waves of `invoke_threads`, and so they do each dispatch function.
Dispatch functions are asked one after the other, at the rate that S3 can serve
(`coordinator.start_rate`).
Lambda starts `ramp_burst` environments of a function at once and `ramp_rate` a second from then on;
environments left warm by an earlier product need no start. A run never has more than `concurrency`
workers under way: the others are invoked, in order, when one of those has ended, and find its
environment warm.
"""

from __future__ import annotations

import heapq
import math

import numpy as np
from numpy.typing import NDArray

from blockstore.stops import FRESH, STOP_INTERVAL
from coordinator.platform import Platform
from coordinator.tree import TREE_FROM, parts
from coordinator.window import OVERLAP
from polarcodes.delays import DelayModel

__all__ = ["begin_times", "dispatch_times", "planned_looks", "ramp_times"]

LOOK_DRAWS = 1 << 16


def dispatch_times(workers: int, platform: Platform, rate: float = math.inf) -> NDArray[np.float64]:
    """(N,) seconds after the start at which worker i has been invoked, if none is held back.

    By this client, or, where `TREE_FROM` may be under way, by dispatch functions that start and
    then invoke a part each, asked one after the other so that `rate` workers begin a second.
    """
    number = np.arange(workers)
    once = np.zeros(workers)
    if min(workers, OVERLAP * platform.concurrency) >= TREE_FROM:
        size = parts(workers, platform.invoke_threads)
        once += platform.invoke_seconds + platform.dispatch_seconds + number // size * size / rate
        number %= size
    waves = number // platform.invoke_threads + 1
    return np.asarray(once + waves * platform.invoke_seconds, dtype=np.float64)


def ramp_times(workers: int, platform: Platform) -> NDArray[np.float64]:
    """(N,) seconds after the start at which Lambda has an environment for the i-th worker.

    max(0, (i + 1 - warm - burst) / rate), with at most `concurrency` environments in all.
    """
    environments = np.minimum(np.arange(workers) + 1, platform.concurrency)
    cold = environments - platform.warm_environments - platform.ramp_burst
    return np.asarray(np.maximum(0.0, cold / platform.ramp_rate), dtype=np.float64)


def planned_looks(
    moments: NDArray[np.float64],
    workers: int,
    platform: Platform,
    rate: float = math.inf,
    delays: DelayModel | None = None,
) -> int:
    """Looks of all workers for the stop marker; an undelayed one has its answers at `moments` (r,).

    Before each task that begins more than `FRESH` after the worker was sent, and every
    `STOP_INTERVAL` in a task. Workers wait for an environment on the launch ramp, which starts if
    it is cold, and for their delay, all of which is taken to come first; those beyond the
    concurrency were held back by the coordinator until there was room.
    """
    first = min(workers, platform.concurrency)
    wait = ramp_times(first, platform) - dispatch_times(first, platform, rate)
    cold = np.arange(first) >= platform.warm_environments
    age = np.zeros((1, workers))
    age[0, :first] = np.maximum(0.0, wait) + cold * platform.cold_seconds
    if delays is not None:
        rounds = max(1, LOOK_DRAWS // workers)
        age = age + delays.sample(np.random.default_rng(workers), rounds, workers)
    begins = np.concatenate([[0.0], moments[:-1]])
    before = sum(float((age + begin > FRESH).mean()) for begin in begins)
    within = float(((moments - begins) // STOP_INTERVAL).sum())
    return round(workers * (before + within))


def begin_times(
    busy: NDArray[np.float64], platform: Platform, rate: float = math.inf
) -> NDArray[np.float64]:
    """(rounds, N) seconds after the start at which workers begin that are busy for `busy` seconds.

    rate : workers a second that a tree starts. Cost: O(rounds N log C) where N is above the
    concurrency C, O(rounds N) elsewhere.
    """
    rounds, workers = busy.shape
    ready = np.maximum(dispatch_times(workers, platform, rate), ramp_times(workers, platform))
    limit = platform.concurrency
    if workers <= limit:
        return np.broadcast_to(ready, busy.shape)
    begin = np.empty_like(busy)
    begin[:, :limit] = ready[:limit]
    for row in range(rounds):
        ends = (begin[row, :limit] + busy[row, :limit]).tolist()
        heapq.heapify(ends)
        for worker, seconds in enumerate(busy[row, limit:].tolist(), limit):
            at = max(ends[0] + platform.invoke_seconds, float(ready[worker]))
            begin[row, worker] = at
            heapq.heapreplace(ends, at + seconds)
    return begin
