"""From an iterate to the next theta: step rule and momentum.

    fixed, none        theta' = theta - a g
    fixed, heavy-ball  v' = beta v - a g,   theta' = theta + v'
    fixed, nesterov    u' = theta - a g,    theta' = u' + beta (u' - u)
    line,  none        theta' = theta + a d,  d = -g
    line,  heavy-ball  d' = -g + beta d
    line,  conjugate   d' = -g + max(0, g.(g - g_old) / g_old.g_old) d   (Polak-Ribiere)

With a line search a is where the objective is least along d; a direction that does not descend is
replaced by -g. For least squares with exact gradients `conjugate` is the conjugate gradient method:
it needs about sqrt(condition number) iterations where the others need its multiple.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from polarlambda.errors import BadInput
from polarlambda.training.gradients import NOTHING, GradientSource, LineSource, Spent
from polarlambda.training.iterate import Iterate
from polarlambda.training.line_search import search_line
from polarlambda.training.models import Array

MOMENTA = ("none", "heavy-ball", "nesterov", "conjugate")
BETA = 0.9


@dataclass(frozen=True)
class Move:
    """theta : the next one (p, k); memory (m, p, k) to remember; step : a, 0 for no way down."""

    theta: Array = field(repr=False)
    memory: Array = field(repr=False)
    step: float
    spent: Spent = NOTHING


class Advance(Protocol):
    """A step rule with its momentum."""

    def __call__(self, source: GradientSource, at: Iterate) -> Move:
        """The step from an iterate."""
        ...


@dataclass(frozen=True)
class FixedStep:
    """A step of given length along the negative gradient, with heavy-ball or Nesterov momentum."""

    step: float
    momentum: str = "none"
    beta: float = BETA

    def __call__(self, source: GradientSource, at: Iterate) -> Move:
        """The step; costs no product."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._move(at)

    def _move(self, at: Iterate) -> Move:
        down = -self.step * at.gradient
        if self.momentum == "heavy-ball":
            velocity = down + (self.beta * at.memory[0] if len(at.memory) else 0.0)
            return Move(at.theta + velocity, velocity[None], self.step)
        if self.momentum == "nesterov":
            here = at.theta + down
            ahead = self.beta * (here - at.memory[0]) if len(at.memory) else 0.0
            return Move(here + ahead, here[None], self.step)
        return Move(at.theta + down, np.empty((0, *at.theta.shape)), self.step)


@dataclass(frozen=True)
class LineSearch:
    """A step to the least value along a direction: the negative gradient, or a conjugate one."""

    momentum: str = "conjugate"
    beta: float = BETA

    def __call__(self, source: GradientSource, at: Iterate) -> Move:
        """The step; costs one product, whatever the number of looks. Raises `BadInput`."""
        if not isinstance(source, LineSource):
            raise BadInput(f"{type(source).__name__} cannot look along a line: give a fixed step")
        direction, memory = self._direction(at)
        if not direction.any():
            return Move(at.theta, memory, 0.0)
        line = source.along(at.theta, direction)
        step = search_line(line, at.step or 1.0)
        if step == 0.0:
            return Move(at.theta, memory, 0.0, line.spent)
        return Move(line.move(step), memory, step, line.spent)

    def _direction(self, at: Iterate) -> tuple[Array, Array]:
        g = at.gradient
        direction = -g
        if len(at.memory) and self.momentum == "heavy-ball":
            direction = direction + self.beta * at.memory[0]
        if len(at.memory) and self.momentum == "conjugate":
            old, old_gradient = at.memory
            power = float((old_gradient * old_gradient).sum())
            turn = float((g * (g - old_gradient)).sum()) / power if power else 0.0
            direction = direction + max(0.0, turn) * old
        if (direction * g).sum() >= 0:
            direction = -g
        if self.momentum == "conjugate":
            return direction, np.stack([direction, g])
        kept = 1 if self.momentum == "heavy-ball" else 0
        return direction, np.stack([direction])[:kept]


def make_advance(
    step: float | str = "line", momentum: str | None = None, beta: float = BETA, *, exact: bool
) -> Advance:
    """The rule for `step` ("line" or a length) and `momentum`; raises `BadInput`.

    The momentum that is not given is "conjugate" for a line search with exact gradients, and "none"
    otherwise: conjugate directions rest on gradients that have no rows missing.
    """
    if momentum is None:
        momentum = "conjugate" if step == "line" and exact else "none"
    if momentum not in MOMENTA:
        raise BadInput(f"momentum must be one of {', '.join(MOMENTA)}, got {momentum!r}")
    if not 0 <= beta < 1:
        raise BadInput(f"beta must be in [0, 1), the momentum's weight, got {beta!r}")
    if step == "line":
        if momentum == "nesterov":
            raise BadInput(
                "nesterov momentum needs a fixed step (--step 0.1): it steps from a point where no "
                "line was searched; with --step line use conjugate"
            )
        return LineSearch(momentum, beta)
    if isinstance(step, str | bool) or not (0 < step < float("inf")):
        raise BadInput(f'step must be "line" or a positive number, got {step!r}')
    if momentum == "conjugate":
        raise BadInput("conjugate directions need --step line; with a fixed step use nesterov")
    return FixedStep(float(step), momentum, beta)
