"""What an optimisation knows between two iterations: one array and a line of figures."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarlambda.optimization.domain import Domain

__all__ = ["Figures", "State"]


@dataclass(frozen=True, kw_only=True)
class Figures:
    """How far it is after `iteration` iterations; all counts and sums are from the beginning.

    score : mean of f over the midpoints of the last iteration's pairs, which is f(theta) before its
        step up to O(sigma^2); score_error : its standard error; best_score : the best of them;
        arrivals, failures, silent : of the last iteration's evaluations; exact : its values
        determined the gradient; seconds of wall time; dollars
    """

    iteration: int = 0
    score: float | None = None
    score_error: float | None = None
    best_score: float | None = None
    evaluations: int = 0
    failed_evaluations: int = 0
    arrivals: int = 0
    failures: int = 0
    silent: int = 0
    exact: bool = False
    radius: float = math.inf
    sigma: float = 0.0
    seconds: float = 0.0
    dollars: float = 0.0
    failure: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; an infinite radius is null."""
        return asdict(self) | {"radius": self.radius if math.isfinite(self.radius) else None}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Figures:
        """Read back `to_json`."""
        radius = data["radius"]
        return cls(**{**data, "radius": math.inf if radius is None else radius})

    def to_metadata(self) -> dict[str, str]:
        """As the metadata of the checkpoint, which S3 keeps as ASCII."""
        short = replace(self, failure=self.failure.encode("ascii", "replace").decode()[:400])
        return {"figures": json.dumps(short.to_json(), ensure_ascii=True)}

    @classmethod
    def from_metadata(cls, metadata: dict[str, str]) -> Figures:
        """Read back `to_metadata`."""
        return cls.from_json(json.loads(metadata["figures"]))


@dataclass(frozen=True)
class State:
    """theta, best, (p,): the point, and the one with the best score; memory (k, p): the
    optimiser's. Replaced, never changed in place."""

    theta: NDArray[np.float64]
    best: NDArray[np.float64]
    memory: NDArray[np.float64]
    domain: Domain
    figures: Figures

    def to_array(self) -> NDArray[np.float64]:
        """(5 + k, p): theta, best, the domain, the memory."""
        return np.vstack([self.theta, self.best, self.domain.to_array(), self.memory])

    @classmethod
    def from_array(cls, array: NDArray[np.float64], figures: Figures) -> State:
        """Read back `to_array`."""
        return cls(array[0], array[1], array[5:], Domain(*array[2:5]), figures)
