"""Starting slow workers once more: a policy of a run, for any code and for none.

The baseline that codes are compared with, and of use beside them: MapReduce's backup tasks (Dean
and Ghemawat, OSDI 2004, section 3.6), and what serverless systems do without redundancy (numpywren,
arXiv 1810.09679). The first valid answer wins; the slow attempt is not stopped before the run is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from coordinator.state import State, Task

__all__ = ["Relaunch", "RelaunchRefused", "next_relaunch", "parse_relaunch", "slow_workers"]

_FORMS = 'use "share=0.9", "times=3" or both as "share=0.75,times=3"'


class RelaunchRefused(ValueError):
    """The text of a `relaunch` policy could not be understood."""


@dataclass(frozen=True)
class Relaunch:
    """When a worker whose answers are missing is invoked once more; at most once by this policy.

    share: this share of all answers has come, in (0, 1].
    times: the worker was asked longer ago than this many times the median answer time of all N
        workers, which is known as soon as half of them have answered; at least 1.
    Where both are given, both must hold.
    """

    share: float | None = None
    times: float | None = None

    def __str__(self) -> str:
        named = (("share", self.share), ("times", self.times))
        return ",".join(f"{name}={value:g}" for name, value in named if value is not None)


def parse_relaunch(policy: str | float | Relaunch | None) -> Relaunch | None:
    """Read "share=0.9", "times=3", both with a comma, or a number, which is a share; None is none.

    Raises RelaunchRefused for anything else, a share outside (0, 1] or times below 1.
    """
    if policy is None or isinstance(policy, Relaunch):
        return policy
    if isinstance(policy, (int, float)) and not isinstance(policy, bool):
        policy = f"share={policy}"
    if not isinstance(policy, str):
        raise RelaunchRefused(f"relaunch must be text, got {type(policy).__name__}: {_FORMS}")
    found: dict[str, float] = {}
    for part in policy.split(","):
        name, equals, number = (piece.strip() for piece in part.partition("="))
        if not equals:
            name, number = "share", name
        if name not in ("share", "times") or name in found:
            raise RelaunchRefused(f"relaunch has no form {policy!r}: {_FORMS}")
        try:
            found[name] = float(number)
        except ValueError:
            raise RelaunchRefused(f"relaunch has no form {policy!r}: {_FORMS}") from None
    if not 0 < found.get("share", 1.0) <= 1:
        raise RelaunchRefused(
            f"relaunch needs a share of the answers above 0 and at most 1, got {policy!r}: {_FORMS}"
        )
    times = found.get("times", 1.0)
    if not (math.isfinite(times) and times >= 1):
        raise RelaunchRefused(
            f"relaunch needs times=T, T at least 1 (of the median answer time), got {policy!r}"
        )
    return Relaunch(**found)


def slow_workers(state: State, at: float) -> list[int]:
    """The workers that the policy invokes once more now."""
    return [worker for worker, moment in _moments(state) if at >= moment]


def next_relaunch(state: State) -> float | None:
    """When the policy falls due for the next worker if no answer comes before; None if never."""
    return min((moment for _, moment in _moments(state)), default=None)


def _moments(state: State) -> Iterator[tuple[int, float]]:
    """(worker, when it is slow) for all whom the policy may still invoke."""
    policy = state.rules.relaunch
    if policy is None:
        return
    if policy.share is not None and len(state.arrived) < policy.share * state.code.workers:
        return
    allowed = 0.0
    if policy.times is not None:
        median = _median_seconds(state.tasks)
        if median is None:
            return
        allowed = policy.times * median
    for worker, task in enumerate(state.tasks):
        missing = task.status in ("running", "failed", "dead") and not task.fatal
        if missing and not task.relaunched and task.ordered is not None:
            yield worker, task.ordered + allowed


def _median_seconds(tasks: tuple[Task, ...]) -> float | None:
    """The median answer time of all workers; None before half of them have answered.

    Those that have not answered are slower than those that have, so that it is exact.
    """
    known = sorted(task.seconds for task in tasks if task.seconds is not None)
    middle = (len(tasks) - 1) // 2
    return known[middle] if len(known) > middle else None
