"""What the run machine is told, and what it orders: plain values, no behaviour.

Every time is in seconds on the run's clock (`coordinator.ports.Clock`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FinalState = Literal["exact", "estimated", "failed", "cancelled", "stopped", "running"]


@dataclass(frozen=True)
class Started:
    """The coordinator is ready to dispatch, or has read back what an earlier one left."""

    at: float


@dataclass(frozen=True)
class Invoked:
    """The platform has accepted the invocations of `workers`."""

    at: float
    workers: tuple[int, ...]
    attempt: int


@dataclass(frozen=True)
class Failed:
    """`worker` reported an error, could not be invoked, or left an answer that cannot be used.

    fatal: another attempt cannot help (permission, wrong shape, NaN in the product, wrong x).
    Anything else is an erasure: the code or one more attempt makes up for it.
    """

    at: float
    worker: int
    attempt: int
    kind: str
    message: str
    fatal: bool = False


@dataclass(frozen=True)
class Arrived:
    """Verified answers at the places `workers` of the code, seen in one listing.

    Here and in `Decided`, `StoreDecisive` and `Decode` a worker that has several blocks counts once
    for each of them, by its place in the code. `seconds`: what the workers say that they took for
    each, for answers that were there before somebody could see them come.
    """

    at: float
    workers: tuple[int, ...]
    seconds: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Published:
    """An estimate was computed and written; it took `seconds`."""

    at: float
    seconds: float


@dataclass(frozen=True)
class Decided:
    """The decisive set that is in the store: ours, or that of a coordinator that was faster."""

    at: float
    workers: tuple[int, ...]


@dataclass(frozen=True)
class Decoded:
    """The decoder is done. `contradiction` is the text of left-over equations that do not hold,
    `how` says which decoder it was."""

    at: float
    contradiction: str | None = None
    how: str = ""


@dataclass(frozen=True)
class Tick:
    """Time passed; nothing new."""

    at: float


@dataclass(frozen=True)
class StopRequested:
    """Somebody wants the run to end: a stop marker in the store, or Ctrl-C."""

    at: float
    state: Literal["cancelled", "stopped"]


@dataclass(frozen=True)
class TimeLimitNear:
    """The platform will end this coordinator soon; another one will carry on."""

    at: float


Signal = (
    Started
    | Invoked
    | Failed
    | Arrived
    | Published
    | Decided
    | Decoded
    | Tick
    | StopRequested
    | TimeLimitNear
)


@dataclass(frozen=True)
class Invoke:
    """Send `workers` off, as attempt number `attempt` of the run.

    relaunch: by the policy for slow workers, not because they were lost.
    """

    workers: tuple[int, ...]
    attempt: int
    relaunch: bool = False


@dataclass(frozen=True)
class Publish:
    """Compute the estimate of what has arrived and write it with the status."""


@dataclass(frozen=True)
class PutStop:
    """Tell workers of every attempt up to `attempt` not to start."""

    attempt: int


@dataclass(frozen=True)
class StoreDecisive:
    """Keep the exact set that will be decoded, unless one was kept before: then a resumed run, or
    a second coordinator, writes the same bytes. `Decided` tells which set it is."""

    workers: tuple[int, ...]


@dataclass(frozen=True)
class Decode:
    """Solve for the product from the answers of `workers`, and write it."""

    workers: tuple[int, ...]


@dataclass(frozen=True)
class Finish:
    """End the run. `met`: what was asked (`until`) is met."""

    state: FinalState
    met: bool
    message: str


Action = Invoke | Publish | PutStop | StoreDecisive | Decode | Finish
