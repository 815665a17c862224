"""Where a run stands: the newest attempt at every block, the rules, what has been decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from blockstore.subtasks import Subtasks
from coordinator.relaunch import Relaunch
from coordinator.until import Until

__all__ = ["Code", "Rules", "State", "Task", "deadline", "initial_state"]


class Code(Protocol):
    """What the machine needs of an erasure code (`coordinator.judge.Judge`).

    What polarcodes calls workers are the places of coded blocks: each worker has one or several.
    """

    @property
    def workers(self) -> int:
        """N, or N r where every worker has r blocks."""
        ...

    @property
    def data_blocks(self) -> int:
        """s, or s r."""
        ...

    def decodable(self, S: Iterable[int]) -> bool:
        """The answers of S determine the product."""
        ...

    def predicted_error(self, m: int) -> float:
        """Relative rms error of the estimate that m answers can be expected to give."""
        ...

    def estimate_error(self, S: Iterable[int]) -> float:
        """Relative rms error of the estimate from exactly these answers."""
        ...


@dataclass(frozen=True)
class Rules:
    """until; deadline in seconds from `State.opened` (None: `worker_timeout` + `grace` after the
    last invocation); worker_timeout in seconds; `attempts` per block in this coordinator's life;
    `relaunch`, which slow workers are invoked once more, on top of that."""

    until: Until
    worker_timeout: float
    deadline: float | None = None
    grace: float = 30.0
    attempts: int = 2
    relaunch: Relaunch | None = None


@dataclass(frozen=True)
class Task:
    """The newest attempt at one worker's blocks.

    idle: never invoked; pending: handed to the invoker when `ordered`; running: accepted by the
    platform at `invoked`; answered: all its verified answers are here; failed: reported; dead:
    silent past its time-out. `tries` counts attempts made by this coordinator because others were
    lost. `relaunched`: the policy has invoked it once more; `earlier` is the slow attempt, while
    it may still answer. `seconds`: from the order to the last answer.
    """

    status: Literal["idle", "pending", "running", "answered", "failed", "dead"] = "idle"
    attempt: int = 0
    ordered: float | None = None
    invoked: float | None = None
    tries: int = 0
    fatal: bool = False
    kind: str = ""
    failure: str = ""
    relaunched: bool = False
    earlier: Task | None = None
    seconds: float | None = None

    @property
    def open(self) -> bool:
        """An answer may still come."""
        return self.status in ("pending", "running")


@dataclass(frozen=True)
class State:
    """Everything that decides what a run does next; replaced, never changed in place."""

    code: Code
    rules: Rules
    tasks: tuple[Task, ...]
    opened: float  # deadline and `seconds=T` count from here
    attempt: int = 0  # newest attempt number given out
    phase: Literal["planned", "collecting", "deciding", "decoding", "finished"] = "planned"
    decisive: tuple[int, ...] | None = None
    last_news: float = 0.0  # time of the newest answer, for the polling pace
    fresh: bool = False  # answers since the last published estimate
    publish_after: float = 0.0
    shares: Subtasks | None = None  # which places of the code each worker has, if several
    here: frozenset[int] = frozenset()  # places of the answers that came, if there are several
    recovered: Callable[[Sequence[int]], float] | None = None  # share of rows that answers give

    @property
    def arrived(self) -> tuple[int, ...]:
        """Places in the code of the verified answers that are here, in increasing order.

        The worker's number is the place where each worker has one block.
        """
        if self.shares is not None:
            return tuple(sorted(self.here))
        return tuple(w for w, task in enumerate(self.tasks) if task.status == "answered")

    def places(self, workers: Iterable[int]) -> tuple[int, ...]:
        """The places of all blocks of these workers."""
        if self.shares is None:
            return tuple(workers)
        return tuple(place for w in workers for place in self.shares.places_of(w))

    def with_arrived(self, workers: Iterable[int]) -> tuple[int, ...]:
        """`arrived`, and all places of these workers."""
        if self.shares is None:
            return (*self.arrived, *workers)
        return tuple(sorted(self.here.union(self.places(workers))))

    @property
    def error(self) -> float:
        """Predicted relative rms error of the estimate now; inf before the first answer."""
        return self.code.estimate_error(self.arrived)

    def within(self, bound: float) -> bool:
        """The estimate's error is at most `bound`; the costly figure only where it may be."""
        return self.code.predicted_error(len(self.arrived)) <= bound and self.error <= bound


def initial_state(
    code: Code,
    rules: Rules,
    opened: float,
    *,
    tasks: Sequence[Task] | None = None,
    attempt: int = 0,
    decisive: tuple[int, ...] | None = None,
    shares: Subtasks | None = None,
    recovered: Callable[[Sequence[int]], float] | None = None,
) -> State:
    """A fresh run, or with `tasks`, `attempt` and `decisive` one that is being resumed.

    shares : which blocks each worker has, None if one each; recovered : the share of the product's
    rows that answers at given places determine, for `tasks=X`.
    """
    workers = code.workers if shares is None else shares.workers
    every = tuple(tasks) if tasks is not None else (Task(),) * workers
    if len(every) != workers:
        raise ValueError(f"tasks must have one entry per worker ({workers}), got {len(every)}")
    return State(
        code,
        rules,
        every,
        opened,
        attempt,
        decisive=decisive,
        last_news=opened,
        shares=shares,
        recovered=recovered,
    )


def deadline(state: State) -> float | None:
    """When the run ends at the latest; None while nothing was accepted by the platform."""
    if state.rules.deadline is not None:
        return state.opened + state.rules.deadline
    if any(task.status == "pending" for task in state.tasks):
        return None
    invoked = [task.invoked for task in state.tasks if task.invoked is not None]
    if not invoked:
        return None
    return max(state.opened, *invoked) + state.rules.worker_timeout + state.rules.grace
