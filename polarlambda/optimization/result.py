"""How an optimisation ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarlambda.optimization.state import Figures

__all__ = ["FinalScore", "OptimizationResult"]


@dataclass(frozen=True)
class FinalScore:
    """f at a theta over seeds that the optimisation did not use: mean, standard error, number of
    seeds, and the dollars they cost."""

    mean: float
    error: float
    evaluations: int
    dollars: float

    def to_json(self) -> dict[str, float | int]:
        """Plain JSON."""
        return {
            "mean": self.mean,
            "error": self.error,
            "evaluations": self.evaluations,
            "cost": self.dollars,
        }


@dataclass(frozen=True, kw_only=True)
class OptimizationResult:
    """theta : (p,) float64, the better one of the last and the best-scoring point where final
    evaluations compared them, else the best-scoring one.

    state : "finished", "target", "stopped", "cancelled" or "failed"; met : what was asked for was
    reached (a target where one was given); final : the score of theta, None without final
    evaluations; history : figures after each iteration.
    """

    optimization: str
    objective: str
    theta: NDArray[np.float64]
    state: str
    met: bool
    message: str
    maximize: bool
    final: FinalScore | None
    figures: Figures
    history: tuple[Figures, ...]

    def to_json(self, theta_path: str | None = None) -> dict[str, Any]:
        """Plain JSON; the history is in the report."""
        last = self.figures
        return {
            "optimization": self.optimization,
            "objective": self.objective,
            "state": self.state,
            "met": self.met,
            "message": self.message,
            "maximize": self.maximize,
            "iterations": last.iteration,
            "evaluations": last.evaluations,
            "failed_evaluations": last.failed_evaluations,
            "score": last.score,
            "score_error": last.score_error,
            "best_score": last.best_score,
            "final": None if self.final is None else self.final.to_json(),
            "seconds": last.seconds,
            "cost": last.dollars,
            "theta": [float(value) for value in self.theta[:1000]],
            "theta_path": theta_path,
        }

    def __str__(self) -> str:
        last = self.figures
        score = "no score" if last.best_score is None else f"best score {last.best_score:.6g}"
        lines = [
            f"{self.objective}: {score} after {last.iteration} iterations, "
            f"{last.evaluations:,} evaluations ({last.failed_evaluations:,} failed), "
            f"{last.seconds:.1f} s, ${last.dollars:.4f}"
        ]
        if self.final is not None:
            lines.append(
                f"final score {self.final.mean:.6g} +- {self.final.error:.2g} "
                f"over {self.final.evaluations} fresh seeds"
            )
        return "\n".join(lines)
