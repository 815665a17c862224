"""What the run machine has heard of its workers: answers, failures, and silence."""

from __future__ import annotations

from dataclasses import replace

from coordinator.signals import Arrived, Failed
from coordinator.state import State, Task

__all__ = ["bury_silent", "note_failure", "take_in", "with_tasks"]


def take_in(state: State, arrived: Arrived) -> State:
    """A worker has answered when all its parts are here, whichever attempts they came from."""
    places, shares = frozenset(arrived.workers) - frozenset(state.arrived), state.shares
    if not places:
        return state
    here, done = state.here, places
    if shares is not None:
        here = here | places
        owners = {shares.owner(place)[0] for place in places}
        done = frozenset(w for w in owners if here.issuperset(shares.places_of(w)))
    changed = {
        w: replace(state.tasks[w], status="answered", seconds=_seconds(state, w, arrived))
        for w in done
    }
    return replace(with_tasks(state, changed), here=here, last_news=arrived.at, fresh=True)


def note_failure(state: State, failed: Failed) -> State:
    """One of two attempts under way that fails leaves the other; a fatal error ends both."""
    task = state.tasks[failed.worker]
    if task.status == "answered":
        return state
    if not failed.fatal and failed.attempt < task.attempt:
        slow = task.earlier
        if slow is None or slow.attempt != failed.attempt:
            return state
        return with_tasks(state, {failed.worker: replace(task, earlier=None)})
    if not failed.fatal and task.earlier is not None:
        return with_tasks(state, {failed.worker: replace(task.earlier, relaunched=True)})
    failure = f"{failed.kind}: {failed.message}" if failed.message else failed.kind
    changed = replace(
        task, status="failed", fatal=failed.fatal, kind=failed.kind, failure=failure, earlier=None
    )
    return with_tasks(state, {failed.worker: changed})


def bury_silent(state: State, at: float) -> State:
    """Workers whose newest attempt has passed its time-out are dead."""
    limit = state.rules.worker_timeout
    silence = f"no sign of life within {limit:g} s"
    dead = {
        w: replace(task, status="dead", failure=silence, earlier=None)
        for w, task in enumerate(state.tasks)
        if task.status == "running" and task.invoked is not None and at >= task.invoked + limit
    }
    return with_tasks(state, dead) if dead else state


def with_tasks(state: State, changed: dict[int, Task]) -> State:
    """The state with these tasks replaced."""
    tasks = list(state.tasks)
    for worker, task in changed.items():
        tasks[worker] = task
    return replace(state, tasks=tuple(tasks))


def _seconds(state: State, worker: int, arrived: Arrived) -> float | None:
    """What the worker's answers took: as it says, or since they were first asked for.

    Not since the platform accepted the invocation: that is heard of late, with the answers of short
    tasks.
    """
    if arrived.seconds is not None:
        said = dict(zip(arrived.workers, arrived.seconds, strict=True))
        return sum(said.get(place, 0.0) for place in state.places((worker,)))
    first = state.tasks[worker].earlier or state.tasks[worker]
    return None if first.ordered is None else arrived.at - first.ordered
