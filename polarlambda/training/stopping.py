"""When a training ends."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from polarlambda.errors import BadInput
from polarlambda.training.iterate import Iterate

State = Literal[
    "converged", "iterations", "seconds", "dollars", "diverged", "stagnated", "stopped", "failed"
]

GROWN = 10.0  # times the first loss: no step that will converge goes there


@dataclass(frozen=True)
class Stop:
    """Goals and limits; a goal that is reached ends a training as "converged".

    gradient_norm : goal, relative to the norm of the first gradient; loss : goal, a value of the
    objective; iterations, seconds, dollars : limits, the dollars never exceeded if an iteration
    costs no more than the one before. Raises `BadInput`.
    """

    gradient_norm: float | None = None
    loss: float | None = None
    iterations: int | None = None
    seconds: float | None = None
    dollars: float | None = None

    def __post_init__(self) -> None:
        for name in ("gradient_norm", "seconds", "dollars"):
            value = getattr(self, name)
            if value is not None and not (0 < value < math.inf):
                raise BadInput(f"{name} must be a positive number, got {value!r}")
        if self.iterations is not None and self.iterations < 1:
            raise BadInput(f"iterations must be at least 1, got {self.iterations!r}")
        if self.loss is not None and not math.isfinite(self.loss):
            raise BadInput(f"loss must be a finite number, got {self.loss!r}")

    @property
    def has_goal(self) -> bool:
        """Whether there is something to reach, and not only limits."""
        return self.gradient_norm is not None or self.loss is not None

    def reached(self, at: Iterate) -> bool:
        """Whether a goal is met; only exact gradients can say so."""
        if not at.exact:
            return False
        return at.norm == 0.0 or self.promised(at.loss, at.norm, at.first_norm)

    def promised(self, loss: float, norm: float, first_norm: float) -> bool:
        """Whether a goal would be met if these were exact: worth an exact gradient to know."""
        by_norm = self.gradient_norm is not None and norm <= self.gradient_norm * first_norm
        return by_norm or (self.loss is not None and loss <= self.loss)

    def limit(self, at: Iterate, last_cost: float) -> tuple[State, str] | None:
        """Which limit keeps the next iteration from being made."""
        if self.iterations is not None and at.iteration >= self.iterations:
            return "iterations", f"{at.iteration} iterations were made, as many as asked for"
        if self.seconds is not None and at.seconds >= self.seconds:
            return "seconds", f"{at.seconds:.1f} s have passed, the limit is {self.seconds:g} s"
        if self.dollars is not None and at.dollars + last_cost > self.dollars:
            return "dollars", (
                f"${at.dollars:.6f} are spent and another iteration would cost about "
                f"${last_cost:.6f}, the limit is ${self.dollars:g}"
            )
        return None


def diverges(at: Iterate, first_loss: float) -> bool:
    """Whether the objective has grown beyond what any step that converges does to it."""
    return not at.finite or at.loss > GROWN * abs(first_loss) + 1e-300
