"""How long the coordinator sleeps between two listings: 50 ms to 2 s.

The pause grows with the time since the last news, by 2-3 %, so that a long wait costs few LIST
requests and the decisive answer is seen late by 2-3 % of a quiet wait at most. Near the decisive
answer it begins at 50 ms; far from it at 200 ms, in a run that has just begun at a quarter of its
age, so that short products are not slept over.
"""

from __future__ import annotations

from coordinator.relaunch import next_relaunch
from coordinator.state import State, deadline

__all__ = ["FASTEST", "SLOWEST", "next_wakeup", "pause"]

FASTEST = 0.05
SLOWEST = 2.0
YOUNG = 0.25  # of the age of a run
NEAR = 0.04  # of the workers: that few answers may make the set decodable


def pause(state: State, at: float, listing_seconds: float = 0.0, fastest: float = FASTEST) -> float:
    """Seconds to sleep now, at least `fastest` unless something falls due.

    Never past the next moment at which time alone changes the run, and never shorter than the last
    listing took: a slow store is asked at most half of the time.
    """
    quiet = max(0.0, at - state.last_news)
    missing = state.code.data_blocks - len(state.arrived)
    near = missing <= max(1, round(NEAR * state.code.workers))
    far = min(4 * FASTEST, YOUNG * max(0.0, at - state.opened))
    wanted = 0.02 * quiet if near else max(far, 0.03 * quiet)
    wanted = min(SLOWEST, max(fastest, listing_seconds, wanted))
    moment = next_wakeup(state)
    if moment is None:
        return wanted
    return max(0.0, min(wanted, moment - at))


def next_wakeup(state: State) -> float | None:
    """When a deadline, `seconds=T`, a worker's time-out or its relaunch falls due next."""
    moments = [deadline(state), next_relaunch(state)]
    if state.rules.until.kind == "seconds" and state.rules.until.bound is not None:
        moments.append(state.opened + state.rules.until.bound)
    moments += [
        task.invoked + state.rules.worker_timeout
        for task in state.tasks
        if task.status == "running" and task.invoked is not None
    ]
    return min((m for m in moments if m is not None), default=None)
