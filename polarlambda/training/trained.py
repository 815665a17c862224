"""What a training returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from polarlambda.errors import BadInput
from polarlambda.training.models import Array

if TYPE_CHECKING:
    from blockstore.trainings import Facts

COLUMNS = (
    "iteration",
    "seconds",
    "dollars",
    "loss",
    "gradient_norm",
    "step",
    "tolerance",
    "recovered",
    "exact",
    "error",
)


@dataclass(frozen=True)
class Trained:
    """The parameters a training ended with, and how it got there.

    theta : (p,) for one output, else (p, k), the intercept as its last row where there is one;
    state : "converged", a limit ("iterations", "seconds", "dollars"), "diverged", "stagnated",
    "stopped" or "failed"; met : what was asked is met; iteration : the one theta is of; classes :
    the label of each class of a classifier; history : what every iteration measured; notes : on the
    data. seconds, dollars : in all.
    """

    training: str
    state: str
    met: bool
    message: str
    theta: Array = field(repr=False)
    loss: float
    gradient_norm: float
    iteration: int
    seconds: float
    dollars: float
    model: str
    intercept: bool
    classes: tuple[float, ...] | None
    notes: tuple[str, ...] = ()
    history: tuple[Facts, ...] = field(default=(), repr=False)

    @property
    def weights(self) -> Array:
        """theta without the intercept, (d,) or (d, k)."""
        return self.theta[:-1] if self.intercept else self.theta

    @property
    def biases(self) -> Array | float:
        """The intercept, a number or (k,); 0 without one."""
        return self.theta[-1] if self.intercept else 0.0

    def scores(self, X: Any) -> Array:
        """X w + b for new rows X (m, d): the prediction of a regression."""
        X = np.asarray(X)
        if X.ndim != 2 or X.shape[1] != len(self.weights):
            raise BadInput(f"X must have shape (m, {len(self.weights)}), got {X.shape}")
        return np.asarray(X @ self.weights + self.biases)

    def predict(self, X: Any) -> Array:
        """The prediction for new rows: a number, or the label of the likeliest class."""
        scores = self.scores(X)
        if self.classes is None:
            return scores
        labels = np.array(self.classes)
        if self.model == "logistic":
            return np.asarray(labels[(scores > 0).astype(np.intp)])
        return np.asarray(labels[scores.argmax(axis=1)])

    def to_json(self, *, theta_path: str | None) -> dict[str, Any]:
        """The fields of ``train --json``."""
        return {
            "training": self.training,
            "state": self.state,
            "met": self.met,
            "message": self.message,
            "model": self.model,
            "intercept": self.intercept,
            "classes": list(self.classes) if self.classes else None,
            "loss": self.loss,
            "gradient_norm": self.gradient_norm,
            "iteration": self.iteration,
            "seconds": self.seconds,
            "dollars": self.dollars,
            "notes": list(self.notes),
            "theta_path": theta_path,
            "history": [dict(zip(COLUMNS, row(facts), strict=True)) for facts in self.history],
        }

    @property
    def _s(self) -> str:
        return "" if self.iteration == 1 else "s"

    def __str__(self) -> str:
        return (
            f"{self.state} after {self.iteration} iteration{self._s} and {self.seconds:.1f} s: "
            f"loss {self.loss:.6g}, gradient norm {self.gradient_norm:.2e}, ${self.dollars:.6f}, "
            f"training {self.training}"
        )


def row(facts: Facts) -> tuple[float | int | bool, ...]:
    """What an iteration adds to the history, in the order of `COLUMNS`."""
    return (
        facts.iteration,
        facts.seconds,
        facts.dollars,
        facts.loss,
        facts.norm,
        facts.step,
        facts.tolerance,
        facts.recovered,
        facts.exact,
        facts.error,
    )
