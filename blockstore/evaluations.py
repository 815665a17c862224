"""One round of evaluations of an objective: what a worker is asked, and what it answers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from blockstore import keys
from blockstore.documents import Fields
from blockstore.errors import NameRefused, RunRecordError, TaskRefused

VERSION = 1
MAX_SEED = 2**31 - 1  # what every library takes as a seed

__all__ = ["Evaluation", "EvaluationFailure", "EvaluationTask", "Round"]


@dataclass(frozen=True, kw_only=True)
class EvaluationTask:
    """What one worker is to evaluate: the event it is invoked with.

    Everything else is in round.json and point.npy. `objective` names the callable, so that a
    function that was deployed with another one refuses instead of answering.
    """

    optimization: str
    round: int
    worker: int
    workers: int
    objective: str
    attempt: int = 1
    version: int = VERSION

    def to_event(self) -> dict[str, Any]:
        """The task as JSON; `run` names the round for logs."""
        return {
            "version": self.version,
            "run": f"{self.optimization}.{self.round:06d}",
            "optimization": self.optimization,
            "round": self.round,
            "worker": self.worker,
            "workers": self.workers,
            "objective": self.objective,
            "attempt": self.attempt,
        }

    @classmethod
    def from_event(cls, event: Mapping[str, Any]) -> EvaluationTask:
        """Read and check an event; raises `TaskRefused` naming the field and the rule."""
        fields = Fields(event, "objective event", TaskRefused)
        fields.version(VERSION)
        workers = fields.integer("workers", low=1)
        try:
            optimization = keys.validate_run(fields.text("optimization"))
        except NameRefused as exc:
            raise TaskRefused(f"objective event: {exc}") from exc
        return cls(
            optimization=optimization,
            round=fields.integer("round"),
            worker=fields.integer("worker", high=workers - 1),
            workers=workers,
            objective=fields.text("objective"),
            attempt=fields.integer("attempt", low=1),
        )


@dataclass(frozen=True, kw_only=True)
class Round:
    """What all workers of a round share: round.json.

    directions : `polarcodes.directions.Directions.to_manifest`, None for a round that evaluates
    the point itself; coordinates : the parameters that the directions move, None for all; seed and
    seeds : worker i's seed is drawn from (seed, i) if seeds is "fresh", else it is `seed`;
    arguments : keyword arguments of the objective; stopped : the round has ended, and workers that
    have not begun need not begin.
    """

    number: int
    workers: int
    parameters: int
    directions: dict[str, Any] | None
    coordinates: tuple[int, ...] | None
    seed: int
    seeds: str
    point_digest: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    stopped: bool = False

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object."""
        return {
            "version": VERSION,
            "number": self.number,
            "workers": self.workers,
            "parameters": self.parameters,
            "directions": self.directions,
            "coordinates": None if self.coordinates is None else list(self.coordinates),
            "seed": self.seed,
            "seeds": self.seeds,
            "point_digest": self.point_digest,
            "arguments": dict(self.arguments),
            "stopped": self.stopped,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Round:
        """Read and check; raises `RunRecordError` naming the field."""
        fields = Fields(data, "round.json", RunRecordError)
        fields.version(VERSION)
        parameters = fields.integer("parameters", low=1)
        coordinates = fields.integers_or_none("coordinates")
        if coordinates is not None and any(place >= parameters for place in coordinates):
            raise fields.fail("coordinates", f"places below {parameters}")
        return cls(
            number=fields.integer("number"),
            workers=fields.integer("workers", low=1),
            parameters=parameters,
            directions=fields.object_or_none("directions"),
            coordinates=coordinates,
            seed=fields.integer("seed", high=MAX_SEED),
            seeds=fields.choice("seeds", ("fresh", "common")),
            point_digest=fields.text("point_digest"),
            arguments=fields.object("arguments"),
            stopped=fields.boolean("stopped"),
        )


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """A worker's answer: f at its points, two of them or one; seconds it took; the seed."""

    worker: int
    values: tuple[float, ...]
    seed: int
    seconds: float
    attempt: int = 1

    def to_json(self) -> dict[str, Any]:
        """The answer as a JSON object."""
        return {
            "version": VERSION,
            "worker": self.worker,
            "values": list(self.values),
            "seed": self.seed,
            "seconds": self.seconds,
            "attempt": self.attempt,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Evaluation:
        """Read and check; raises `RunRecordError` naming the field."""
        fields = Fields(data, "answer", RunRecordError)
        fields.version(VERSION)
        values = data.get("values")
        if not isinstance(values, list) or not 1 <= len(values) <= 2:
            raise fields.fail("values", "one or two numbers")
        if any(isinstance(v, bool) or not isinstance(v, int | float) for v in values):
            raise fields.fail("values", "one or two numbers")
        if not all(math.isfinite(v) for v in values):
            raise fields.fail("values", "finite")
        return cls(
            worker=fields.integer("worker"),
            values=tuple(float(v) for v in values),
            seed=fields.integer("seed"),
            seconds=fields.number("seconds"),
            attempt=fields.integer("attempt", low=1),
        )


@dataclass(frozen=True, kw_only=True)
class EvaluationFailure:
    """An evaluation without a value: an erasure, with the objective's own words.

    `fatal`: the function cannot evaluate this objective at all (wrong name, denied, broken code).
    """

    worker: int
    attempt: int
    type: str
    message: str
    fatal: bool = False

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object."""
        return {
            "version": VERSION,
            "worker": self.worker,
            "attempt": self.attempt,
            "type": self.type,
            "message": self.message,
            "fatal": self.fatal,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> EvaluationFailure:
        """Read and check; raises `RunRecordError` naming the field."""
        fields = Fields(data, "failure", RunRecordError)
        fields.version(VERSION)
        return cls(
            worker=fields.integer("worker"),
            attempt=fields.integer("attempt", low=1),
            type=fields.text("type"),
            message=fields.text("message"),
            fatal=fields.boolean("fatal"),
        )
