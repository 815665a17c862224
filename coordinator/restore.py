"""What an earlier coordinator left in the store, as the state of the machine."""

from __future__ import annotations

from dataclasses import replace

from blockstore import keys
from blockstore.runs import RunStore
from coordinator.journal import Journal
from coordinator.state import Rules, Task

__all__ = ["opening", "restore_tasks", "stop_markers"]


def stop_markers(store: RunStore) -> frozenset[int]:
    """The attempts whose stop marker is in the store."""
    prefix = keys.stop_prefix(store.run)
    names = (info.key.removeprefix(prefix) for info in store.bucket.list(prefix))
    return frozenset(int(name) for name in names if name.isdecimal())


def restore_tasks(journal: Journal, stops: frozenset[int]) -> list[Task]:
    """The newest attempt at every block.

    A worker whose dispatch was completed may still be running, and is not invoked again before its
    time-out. One whose dispatch was cut off may never have been invoked: idle. One whose attempt
    was stopped will hardly answer: dead. Answers and error records that are in the store change
    that when they are taken in. A slow worker that was invoked once more keeps its earlier attempt
    beside the new one.
    """
    tasks = [Task()] * journal.spec.workers
    for dispatch in sorted(journal.dispatches, key=lambda d: d.attempt):
        for worker in dispatch.workers:
            earlier = tasks[worker] if tasks[worker].open and dispatch.relaunch else None
            relaunched = dispatch.relaunch or tasks[worker].relaunched
            if dispatch.attempt in stops:
                task = Task("dead", dispatch.attempt, failure="the run was stopped")
            elif dispatch.complete:
                task = Task("running", dispatch.attempt, ordered=dispatch.at, invoked=dispatch.at)
            elif earlier is not None:
                continue  # perhaps never invoked again: the policy decides anew
            else:
                task = Task("idle", dispatch.attempt)
            tasks[worker] = replace(task, relaunched=relaunched, earlier=earlier)
    return tasks


def opening(journal: Journal, rules: Rules, now: float) -> float:
    """When the time allowed begins: with the run, or now if that time is already over."""
    limits = [rules.deadline, rules.until.bound if rules.until.kind == "seconds" else None]
    allowed = min((limit for limit in limits if limit is not None), default=None)
    if not journal.dispatches:
        return now
    return now if allowed is None or now >= journal.began + allowed else journal.began
