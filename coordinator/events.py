"""What a caller of a run is told while it runs (`on_event`): typed, with seconds since it began."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

__all__ = [
    "Arrived",
    "Decodable",
    "Decoded",
    "Dispatched",
    "Estimated",
    "Event",
    "Failed",
    "Finished",
    "Reinvoked",
]


@dataclass(frozen=True, kw_only=True)
class Event:
    """t: seconds since the run began; arrivals: verified answers so far, of `workers` times
    `subtasks`.

    error: predicted relative rms error of the estimate at that moment (inf without an answer), in
    the run's `metric`: "vector", of the product; "inner", of inner products with given vectors.
    """

    t: float
    run: str
    arrivals: int
    workers: int
    error: float
    subtasks: int = 1
    metric: str = "vector"


@dataclass(frozen=True, kw_only=True)
class Dispatched(Event):
    """`count` workers are being invoked, as attempt number `attempt`."""

    count: int
    attempt: int


@dataclass(frozen=True, kw_only=True)
class Reinvoked(Event):
    """These workers are invoked once more: no decodable set could come any more without them, or
    (`slow`) the run's policy says so while their earlier attempt is under way."""

    missing: tuple[int, ...]
    attempt: int
    slow: bool = False


@dataclass(frozen=True, kw_only=True)
class Arrived(Event):
    """A verified answer of `worker`, to its task number `task` if it has several."""

    worker: int
    task: int = 0


@dataclass(frozen=True, kw_only=True)
class Failed(Event):
    """`worker` reported an error, could not be invoked, or left an unusable answer."""

    worker: int
    attempt: int
    kind: str
    message: str
    fatal: bool


@dataclass(frozen=True, kw_only=True)
class Estimated(Event):
    """An estimate was published: `value` has the shape of the product; it is not to be changed.

    error_upper: 95 % bound of the relative error.
    """

    value: NDArray[Any]
    error_upper: float
    method: str


@dataclass(frozen=True, kw_only=True)
class Decodable(Event):
    """The answers of `decisive` determine the product."""

    decisive: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Decoded(Event):
    """The exact product is in the store. verified: left-over equations were there and hold.

    method: the decoder; rounding: predicted relative rms error by rounding.
    """

    verified: bool
    verification: str
    seconds: float
    method: str
    rounding: float


@dataclass(frozen=True, kw_only=True)
class Finished(Event):
    """The run has ended in `state`; `met`: what was asked is met."""

    state: str
    met: bool
    error_upper: float
    message: str
