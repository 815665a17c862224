"""Delay models: how much longer than its own task a worker takes, in seconds.

A model never knows the task. The time of worker i in round t is task seconds + sample[t, i], so the
same model serves the planner, the simulation and the local Lambda service. Names: `none`,
`exponential`, `lambda-rare-tail` (see `rare_tail.py`, fitted to measurements), and `from_table` for
measured rounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarcodes.rare_tail import LambdaRareTail


class DelayModel(Protocol):
    """Extra seconds of each worker in each round."""

    @property
    def name(self) -> str:
        """Name that `make_delays` knows, or a label for measured tables."""
        ...

    @property
    def mean(self) -> float:
        """Mean extra seconds of one worker."""
        ...

    def sample(self, rng: np.random.Generator, rounds: int, workers: int) -> NDArray[np.float64]:
        """Draw a (rounds, workers) float64 array of extra seconds, all finite and >= 0."""
        ...

    def quantile(self, probability: float) -> float:
        """Extra seconds that one worker stays below with this probability in [0, 1)."""
        ...

    def describe(self) -> str:
        """One line for reports."""
        ...


@dataclass(frozen=True)
class NoDelay:
    """Every worker takes exactly its task time."""

    name: str = "none"
    mean: float = 0.0

    def sample(self, rng: np.random.Generator, rounds: int, workers: int) -> NDArray[np.float64]:
        """Zeros of shape (rounds, workers); the generator is not used."""
        return np.zeros((rounds, workers))

    def quantile(self, probability: float) -> float:
        """Always 0.0 seconds."""
        _check_probability(probability)
        return 0.0

    def describe(self) -> str:
        """One line for reports."""
        return "none: no worker is delayed"


@dataclass(frozen=True)
class ExponentialDelay:
    """Independent exponential delays with the given mean in seconds (arXiv 2309.00682 and
    1811.09271 use this family)."""

    mean: float = 1.0
    name: str = "exponential"

    def __post_init__(self) -> None:
        if not 0.0 < self.mean < math.inf:
            raise ValueError(f"mean must be a positive number of seconds, got {self.mean!r}")

    def sample(self, rng: np.random.Generator, rounds: int, workers: int) -> NDArray[np.float64]:
        """Draw a (rounds, workers) float64 array of extra seconds."""
        return rng.exponential(self.mean, (rounds, workers))

    def quantile(self, probability: float) -> float:
        """-mean log(1 - probability)."""
        _check_probability(probability)
        return -self.mean * math.log1p(-probability)

    def describe(self) -> str:
        """One line for reports."""
        return f"exponential: {self.mean:g} s of delay per worker on average"


@dataclass(frozen=True)
class MeasuredDelay:
    """Measured rounds, replayed: `excess` (rounds, workers) is each value minus the minimum of its
    row, in seconds."""

    excess: NDArray[np.float64] = field(repr=False)
    name: str = "measured"

    def sample(self, rng: np.random.Generator, rounds: int, workers: int) -> NDArray[np.float64]:
        """Draw `rounds` measured rounds with replacement, and from each as many workers.

        Workers are drawn without replacement, so that a round keeps its own mix of stragglers; with
        replacement when more are asked for than were measured. The result has shape (rounds,
        workers), float64, seconds.
        """
        measured_rounds, measured_workers = self.excess.shape
        rows = rng.integers(measured_rounds, size=rounds)
        if workers > measured_workers:
            columns = rng.integers(measured_workers, size=(rounds, workers))
        else:
            columns = np.argsort(rng.random((rounds, measured_workers)), axis=1)[:, :workers]
        return self.excess[rows[:, None], columns]

    @property
    def mean(self) -> float:
        """Mean extra seconds over all measured values."""
        return float(self.excess.mean())

    def quantile(self, probability: float) -> float:
        """Quantile of all measured values."""
        _check_probability(probability)
        return float(np.quantile(self.excess, probability))

    def describe(self) -> str:
        """One line for reports."""
        rounds, workers = self.excess.shape
        return (
            f"{self.name}: {rounds} measured rounds of {workers} workers, value minus row minimum"
        )


def from_table(seconds: ArrayLike, name: str = "measured") -> MeasuredDelay:
    """Delay model that replays a table of measured times.

    Parameters: `seconds` (rounds, workers), one row per round, one column per worker; a 1-D table
    is one round. Raises ValueError when the table is empty, has more than two axes, or holds a
    negative or non-finite value.
    """
    table = np.array(seconds, dtype=np.float64, ndmin=2)
    if table.ndim != 2 or table.size == 0:
        raise ValueError(
            f"the delay table must be (rounds, workers) and not empty, got shape {table.shape}"
        )
    bad = np.argwhere(~(np.isfinite(table) & (table >= 0.0)))
    if bad.size:
        row, column = (int(i) for i in bad[0])
        raise ValueError(
            f"the delay table must hold finite seconds >= 0, got {table[row, column]} "
            f"in row {row}, column {column}"
        )
    excess = table - table.min(axis=1, keepdims=True)
    excess.setflags(write=False)
    return MeasuredDelay(excess=excess, name=name)


_MODELS: dict[str, Callable[..., DelayModel]] = {
    "none": NoDelay,
    "exponential": ExponentialDelay,
    "lambda-rare-tail": LambdaRareTail,
}

DELAY_NAMES = tuple(_MODELS)


def make_delays(name: str, **parameters: float) -> DelayModel:
    """Delay model by name, e.g. `make_delays("exponential", mean=0.2)`.

    Raises ValueError for a name not in `DELAY_NAMES`, a parameter the model does not have, or a
    value outside its domain.
    """
    if name not in _MODELS:
        raise ValueError(f"delay model must be one of {', '.join(DELAY_NAMES)}; got {name!r}")
    try:
        return _MODELS[name](**parameters)
    except TypeError as error:
        raise ValueError(
            f"delay model {name!r} does not take these parameters: {parameters}"
        ) from error


def _check_probability(probability: float) -> None:
    if not 0.0 <= probability < 1.0:
        raise ValueError(f"probability must be in [0, 1), got {probability!r}")
