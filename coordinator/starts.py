"""When workers begin: how fast they are invoked, how fast Lambda starts environments, and who has
to wait for one that is free.

Invocations leave a client in waves of `invoke_threads`, and so they do each dispatch function.
Lambda starts `ramp_burst` environments of a function at once and `ramp_rate` a second from then on;
environments left warm by an earlier product need no start. A run never has more than `concurrency`
workers under way: the others are invoked, in order, when one of those has ended, and find its
environment warm.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from coordinator.platform import Platform
from coordinator.tree import TREE_FROM, parts

__all__ = ["begin_times", "dispatch_times", "ramp_times"]


def dispatch_times(workers: int, platform: Platform) -> NDArray[np.float64]:
    """(N,) seconds after the start at which worker i has been invoked.

    By this client, or from `TREE_FROM` workers on by dispatch functions that start and then invoke
    a part each, all at the same time.
    """
    number, once = np.arange(workers), 0.0
    if workers >= TREE_FROM:
        number %= parts(workers, platform.invoke_threads)
        once = platform.invoke_seconds + platform.dispatch_seconds
    waves = number // platform.invoke_threads + 1
    return np.asarray(once + waves * platform.invoke_seconds, dtype=np.float64)


def ramp_times(workers: int, platform: Platform) -> NDArray[np.float64]:
    """(N,) seconds after the start at which Lambda has an environment for the i-th worker.

    max(0, (i + 1 - warm - burst) / rate), with at most `concurrency` environments in all.
    """
    environments = np.minimum(np.arange(workers) + 1, platform.concurrency)
    cold = environments - platform.warm_environments - platform.ramp_burst
    return np.asarray(np.maximum(0.0, cold / platform.ramp_rate), dtype=np.float64)


def begin_times(busy: NDArray[np.float64], platform: Platform) -> NDArray[np.float64]:
    """(rounds, N) seconds after the start at which workers begin that are busy for `busy` seconds.

    Cost: O(rounds N log C) where N is above the concurrency C, O(rounds N) elsewhere.
    """
    rounds, workers = busy.shape
    ready = np.maximum(dispatch_times(workers, platform), ramp_times(workers, platform))
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
