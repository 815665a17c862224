"""What an optimisation is asked to do, checked before anything is written or invoked."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from coordinator.wait import parse_wait
from polarcodes.directions import DIRECTION_KINDS, make_directions, smallest_count
from polarcodes.directions.base import ESTIMATORS
from polarlambda.errors import BadInput

OPTIMIZERS = ("adam", "sgd")
CONTROLS = ("none", "trust")
SEEDS = ("fresh", "common")

__all__ = ["CONTROLS", "OPTIMIZERS", "SEEDS", "Options"]


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to optimise. Everything is stored with the optimisation, and resumed with it.

    maximize : go up instead of down
    directions, code : "coded" rows of the "hadamard" (any p answers decode) or "polar" code;
        "structured", "gaussian" and "finite-differences" are baselines
    workers : N, evaluations of a pair of points in an iteration; redundancy : the share of them
        that may be missing, which decides N where it is not given
    block : parameters that one iteration moves; all, where it is not given. Blocks take turns in an
        order drawn anew for each pass, and a step moves its block alone
    sigma : size of the perturbations in units of `scale` (a parameter's box, else the rms of
        theta, else 1)
    optimizer, rate, momentum : "adam", or "sgd" with heavy-ball momentum; rate in units of `scale`
    control : "trust" bounds the rms step by a radius that grows by 1.2 when the score improves and
        halves when it worsens by more than two standard errors
    wait : what an iteration waits for: "decodable", "all", "share=0.8" or "seconds=5"
    estimator : of the gradient, see `polarcodes.directions.Directions.gradient`
    seeds : "fresh": every pair of points has a seed of its own; "common": all of an iteration share
        one, and so the noise that depends on it
    seed : of everything that is drawn
    arguments : keyword arguments of the objective, plain JSON
    iterations, evaluations, seconds, dollars : limits; target : a score that is good enough
    final : evaluations of the last and the best theta at the end, with seeds that were not used
    """

    maximize: bool = False
    directions: str = "coded"
    code: str = "hadamard"
    workers: int | None = None
    redundancy: float = 0.25
    block: int | None = None
    sigma: float = 0.05
    optimizer: str = "adam"
    rate: float = 0.05
    momentum: float = 0.9
    control: str = "none"
    wait: str = "decodable"
    estimator: str = "auto"
    seeds: str = "fresh"
    seed: int = 0
    arguments: Mapping[str, Any] = field(default_factory=dict)
    iterations: int = 100
    evaluations: int | None = None
    seconds: float | None = None
    dollars: float | None = None
    target: float | None = None
    final: int = 0

    def check(self, parameters: int) -> None:
        """Raise `BadInput` naming the argument, the rule, the value and the fix."""
        for name, allowed in (
            ("directions", DIRECTION_KINDS),
            ("optimizer", OPTIMIZERS),
            ("control", CONTROLS),
            ("estimator", ESTIMATORS),
            ("seeds", SEEDS),
        ):
            value = getattr(self, name)
            if value not in allowed:
                raise BadInput(f"{name} must be one of {', '.join(allowed)}, got {value!r}")
        parse_wait(self.wait)
        try:
            json.dumps(dict(self.arguments), allow_nan=False)
        except (TypeError, ValueError) as exc:
            raise BadInput(f"arguments must be plain JSON: {exc}") from exc
        for name in ("sigma", "rate"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise BadInput(f"{name} must be a number above 0, got {value}")
        if not 0 <= self.momentum < 1:
            raise BadInput(f"momentum must be in [0, 1), got {self.momentum}")
        for name in ("seconds", "dollars"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value > 0):
                raise BadInput(f"{name} must be above 0, got {value}: leave it out for no limit")
        for name, low in (("iterations", 1), ("seed", 0), ("final", 0)):
            if getattr(self, name) < low:
                raise BadInput(f"{name} must be at least {low}, got {getattr(self, name)}")
        if self.target is not None and not math.isfinite(self.target):
            raise BadInput(f"target must be finite, got {self.target}")
        if self.block is not None and not 1 <= self.block <= parameters:
            raise BadInput(
                f"block must be 1 to the number of parameters, {parameters}, got {self.block}"
            )
        make_directions(
            self.directions,
            parameters=self.block_size(parameters),
            count=self.count(parameters),
            **self.direction_options,
        )
        if self.evaluations is not None and self.evaluations < 2 * self.count(parameters):
            raise BadInput(
                f"evaluations must pay for one iteration, {2 * self.count(parameters)}, got "
                f"{self.evaluations}: give more, or fewer workers"
            )

    def block_size(self, parameters: int) -> int:
        """Parameters that one iteration moves."""
        return min(parameters, self.block or parameters)

    def count(self, parameters: int) -> int:
        """N, given or the smallest with the redundancy."""
        if self.workers is not None:
            return self.workers
        return smallest_count(self.directions, self.block_size(parameters), self.redundancy)

    @property
    def direction_options(self) -> dict[str, Any]:
        """Options of the family of directions."""
        return {"code": self.code} if self.directions == "coded" else {}

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Options:
        """Read back `to_json`; unknown names, of a newer release, are refused."""
        known = {f.name for f in fields(cls)}
        unknown = sorted(set(data) - known)
        if unknown:
            raise BadInput(f"the optimisation was begun by another release: option {unknown[0]!r}")
        return cls(**data)
