"""Anytime steps, one after the other: how far to let the next product run, or make it exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from polarlambda.training.anytime import Cycle, Stop, best_stop

__all__ = ["MOST_ERROR", "AnytimeSteps"]

MOST_ERROR = 0.9
"""No step is made with an estimate whose error is predicted above this share of the gradient: what
is predicted from the last step's curvature may be half as much again."""


@dataclass(frozen=True)
class AnytimeSteps:
    """What is known between two steps; replaced, never changed in place.

    cycle : the exact step and those that refer to it, None before the first one; curvature :
    ||g - g_ref|| / ||theta - theta_ref|| of the latest step, None before there are two.
    """

    cycle: Cycle | None = None
    curvature: float | None = None

    def plan(
        self, distance: float, gradient: float, errors: Sequence[float], costs: Sequence[float]
    ) -> Stop | None:
        """Where to stop the product of the next step; None when an exact product is due.

        distance : ||theta - theta_ref|| of the next theta; gradient : ||g|| of the latest step,
        which the next one's will be near; errors, costs : of the estimate from 1, 2, ... answers,
        the costs of a product that ends there. The drift is foretold by the curvature of the
        latest step: steps follow each other along the same directions.
        """
        if self.cycle is None or self.curvature is None or gradient <= 0:
            return None
        drift = self.curvature * distance / gradient
        stop = best_stop(drift, errors, costs, max(self.cycle.rate, self.cycle.earlier))
        if stop.eta > MOST_ERROR or not self.cycle.goes_on(stop):
            return None
        return replace(stop, bearable=min(stop.bearable, MOST_ERROR))

    def exact(self, cost: float, distance: float, change: float) -> AnytimeSteps:
        """After an exact product: a new cycle. distance and change, ||theta - theta_ref|| and
        ||g - g_ref||, are to the reference before (0 for the first one)."""
        cycle = Cycle(cost) if self.cycle is None else self.cycle.refreshed(cost)
        return AnytimeSteps(cycle, _curvature(distance, change, self.curvature))

    def estimated(self, eta: float, cost: float, distance: float, change: float) -> AnytimeSteps:
        """After a product that ended as an estimate with this error of the gradient."""
        if self.cycle is None:
            raise ValueError("an estimate needs an exact product to refer to")
        curvature = _curvature(distance, change, self.curvature)
        return replace(self, cycle=self.cycle.after(eta, cost), curvature=curvature)


def _curvature(distance: float, change: float, before: float | None) -> float | None:
    return change / distance if distance > 0 else before
