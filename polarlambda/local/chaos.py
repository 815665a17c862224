"""Delays, deaths and throttling of workers, drawn from a seed: the service's doing, never the
product's.

Only events that name a ``run`` and a ``worker`` are touched, so coordinators are never delayed
or failed. Resident workers, which serve run after run, are not touched when they are invoked but
in every run, when their answer comes in (`residents.ResidentChaos`). The run's number is the order
in which runs are first seen, from 0. Everything is a function of (seed, run's number, worker,
attempt): the order in which concurrent requests come in changes nothing. A worker that is invoked
again meets another delay of the same run, as on Lambda, where slowness hardly persists; one that
dies does so at every attempt.
"""

from __future__ import annotations

import csv
import math
import random
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from polarlambda.local.errors import OptionRefused


@dataclass(frozen=True)
class ChaosSettings:
    """``delays`` is a CSV (a row a run, a column a worker, seconds; the row's minimum is taken
    off), ``model`` a name of polarcodes.delays; either is multiplied by ``scale``. ``fail``
    workers of each run die at every attempt; each request is throttled with probability
    ``throttle``.
    """

    delays: str | None = None
    model: str | None = None
    scale: float = 1.0
    fail: int = 0
    throttle: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.delays is not None and self.model is not None:
            raise OptionRefused("give delays (a CSV file) or a delay model, not both")
        if not (math.isfinite(self.scale) and self.scale >= 0):
            raise OptionRefused(f"scale must be a finite number >= 0, not {self.scale}")
        if self.fail < 0:
            raise OptionRefused(f"fail must be a number of workers >= 0, not {self.fail}")
        if not 0 <= self.throttle < 1:
            raise OptionRefused(f"throttle must be a probability in [0, 1), not {self.throttle}")
        if self.seed < 0:
            raise OptionRefused(f"seed must be >= 0, not {self.seed}")

    @property
    def touches_workers(self) -> bool:
        """Whether a worker may be delayed or die."""
        return self.delays is not None or self.model is not None or self.fail > 0

    def to_json(self) -> dict[str, Any]:
        """The arguments that make an equal object."""
        return asdict(self)


@dataclass(frozen=True)
class Fate:
    """What happens to one invocation: seconds of sleep before the handler sees the event;
    whether it dies instead.
    """

    delay: float = 0.0
    dies: bool = False


@dataclass
class Chaos:
    """The draws for one stack. Creating it reads the CSV (or makes the model) and refuses what
    cannot be used.
    """

    settings: ChaosSettings
    _runs: dict[str, int] = field(default_factory=dict)
    _doomed: dict[str, frozenset[int]] = field(default_factory=dict)
    _sampled: dict[str, list[float]] = field(default_factory=dict)
    _requests: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        path, model = self.settings.delays, self.settings.model
        self._table = None if path is None else read_delays(Path(path))
        self._model = None if model is None else _make_model(model)

    def fate(self, event: Any) -> Fate:
        """What happens to the invocation with this event."""
        key = _worker_of(event)
        if key is None:
            return Fate()
        return self.fate_of(*key, event.get("attempt"))

    def fate_of(self, run: str, worker: int, workers: int, attempt: Any) -> Fate:
        """What happens to an attempt of a worker in a run."""
        column = self._column(run, worker, workers, attempt)
        delay = self._delay(run, column, workers) * self.settings.scale
        return Fate(delay, worker in self._doomed_workers(run, workers))

    def throttled(self, event: Any) -> bool:
        """Whether this request is refused with a 429; its repetition is a new draw."""
        key = _worker_of(event)
        if key is None or self.settings.throttle == 0:
            return False
        run, worker, _ = key
        name = f"{self._order(run)}/{worker}/{event.get('attempt')}"
        self._requests[name] += 1
        draw = f"{self.settings.seed}/throttle/{name}/{self._requests[name]}"
        return random.Random(draw).random() < self.settings.throttle

    def _order(self, run: str) -> int:
        return self._runs.setdefault(run, len(self._runs))

    def _column(self, run: str, worker: int, workers: int, attempt: Any) -> int:
        """Whose delay an attempt meets: the worker's own, later ones that of anybody."""
        if not isinstance(attempt, int) or attempt < 2:
            return worker
        draw = f"{self.settings.seed}/attempt/{self._order(run)}/{worker}/{attempt}"
        return random.Random(draw).randrange(workers)

    def _delay(self, run: str, worker: int, workers: int) -> float:
        order = self._order(run)
        if self._table is not None:
            row = self._table[order % len(self._table)]
            return row[worker % len(row)] - min(row)
        if self._model is None:
            return 0.0
        if len(self._sampled.get(run, ())) <= worker:
            self._sampled[run] = _sample(self._model, self.settings.seed, order, workers)
        return self._sampled[run][worker]

    def _doomed_workers(self, run: str, workers: int) -> frozenset[int]:
        if run not in self._doomed:
            draw = random.Random(f"{self.settings.seed}/fail/{self._order(run)}")
            chosen = draw.sample(range(workers), min(self.settings.fail, workers))
            self._doomed[run] = frozenset(chosen)
        return self._doomed[run]


def read_delays(path: Path) -> list[list[float]]:
    """The rows of a CSV of seconds. Raises OptionRefused for anything but a full table of finite
    numbers >= 0.
    """
    try:
        with path.open(newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise OptionRefused(f"cannot read the delays in {path}: {reason}") from None
    if not rows:
        raise OptionRefused(
            f"{path} has no rows: give one row a run, one column a worker, in seconds"
        )
    table = []
    for number, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise OptionRefused(
                f"{path} row {number} has {len(row)} values, row 1 has {len(rows[0])}"
            )
        table.append([_seconds(path, number, column, text) for column, text in enumerate(row, 1)])
    return table


def _seconds(path: Path, row: int, column: int, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0):
        raise OptionRefused(
            f"{path} row {row} column {column}: {text!r} is not a number of seconds >= 0"
        )
    return value


def _worker_of(event: Any) -> tuple[str, int, int] | None:
    """(run, worker, workers) of a worker's event; None for any other."""
    if not isinstance(event, dict) or "session" in event:
        return None
    run, worker, workers = event.get("run"), event.get("worker"), event.get("workers")
    if not (isinstance(run, str) and isinstance(worker, int) and worker >= 0):
        return None
    return run, worker, workers if isinstance(workers, int) and workers > worker else worker + 1


def _make_model(name: str) -> Any:
    from polarcodes.delays import make_delays

    try:
        return make_delays(name)
    except ValueError as error:
        raise OptionRefused(str(error)) from None


def _sample(model: Any, seed: int, order: int, workers: int) -> list[float]:
    import numpy as np

    row = model.sample(np.random.default_rng([seed, order]), 1, workers)[0]
    return [float(value) for value in row]
