"""Gradient descent: evaluate, tell, stop or step. Knows neither AWS nor S3."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from polarlambda.training.advance import Advance, LineSearch, Move
from polarlambda.training.gradients import NOTHING, GradientSource, ProductFailed, Spent
from polarlambda.training.iterate import Iterate
from polarlambda.training.models import Array
from polarlambda.training.stopping import State, Stop, diverges
from polarlambda.training.tolerance import EXACT, Tolerance

FLAT_ITERATIONS = 3  # in a row without any decrease: what is left is rounding


@dataclass(frozen=True)
class Ending:
    """How a training ended: `at` is the last iterate, or the best one if it diverged."""

    state: State
    at: Iterate
    message: str


@dataclass(frozen=True)
class Descent:
    """A training: where gradients come from, how to step, when to stop.

    clock : seconds, from anywhere.
    """

    source: GradientSource
    advance: Advance
    stop: Stop
    tolerance: Tolerance = EXACT
    clock: Callable[[], float] = time.monotonic

    def run(
        self,
        on_iterate: Callable[[Iterate], None],
        *,
        resume: Iterate | None = None,
        first_loss: float | None = None,
        theta: Array | None = None,
        spent: Spent = NOTHING,
    ) -> Ending:
        """Descend from zero (or `theta`), or go on from an iterate that was stored.

        `on_iterate` is called with every new iterate, before the step from it is made: what it
        stores is all that is needed to go on. One that diverges is not passed on. `first_loss` is
        that of iteration 0, of a training that is resumed; `spent` is what was spent before it.
        Raises `ProductFailed` if even the first gradient fails; a later failure ends the training
        in state "failed" or "stopped".
        """
        began = self.clock()
        before = resume.seconds if resume is not None else spent.seconds

        def elapsed() -> float:
            return before + self.clock() - began

        if resume is None:
            start = np.zeros(self.source.shape) if theta is None else np.array(theta, np.float64)
            move = Move(start, np.empty((0, *start.shape)), 0.0, spent)
            at = self._evaluate(move, None, elapsed)
            if not at.finite:
                return Ending("diverged", at, "the objective is not finite where it starts")
            on_iterate(at)
        else:
            at = resume
        lowest, best = at.loss if first_loss is None else first_loss, at
        limit = at.loss if first_loss is None else first_loss
        flat, cost = 0, 0.0
        while True:
            if self.stop.reached(at):
                return Ending("converged", at, f"gradient norm {at.norm:.3g}, loss {at.loss:.9g}")
            if ended := self.stop.limit(at, cost):
                return Ending(ended[0], at, ended[1])
            try:
                move = self.advance(self.source, at)
                if move.step == 0.0:
                    return _stagnated(at)
                new = self._evaluate(move, at, elapsed)
            except ProductFailed as failure:
                state: State = "stopped" if failure.state in ("stopped", "cancelled") else "failed"
                return Ending(state, at, str(failure))
            if diverges(new, limit):
                return _diverged(best, new)
            on_iterate(new)
            if new.loss < lowest or not new.exact:
                flat = 0
            else:
                flat += 1
            if new.loss < best.loss:
                best = new
            lowest = min(lowest, new.loss)
            cost, at = new.dollars - at.dollars, new
            if flat >= FLAT_ITERATIONS and isinstance(self.advance, LineSearch):
                return _stagnated(at)

    def _evaluate(
        self, move: Move, before: Iterate | None, elapsed: Callable[[], float]
    ) -> Iterate:
        iteration = 0 if before is None else before.iteration + 1
        tolerance = self.tolerance.at(iteration)
        with np.errstate(over="ignore", invalid="ignore"):
            sound = bool(np.isfinite(np.square(move.theta).sum()))
        if not sound and before is not None:  # no product can be computed there
            value, loss, norm = before.gradient, np.inf, np.inf
            exact, error, recovered, spent = False, 0.0, 0.0, NOTHING
        else:
            found = self.source.gradient(move.theta, tolerance)
            norm, spent = _norm(found.value), found.spent
            first = norm if before is None else before.first_norm
            if not found.exact and self.stop.promised(found.loss, norm, first):
                found = self.source.gradient(move.theta, 0.0)  # only an exact one can say so
                norm, spent = _norm(found.value), spent + found.spent
            value, loss, exact = found.value, found.loss, found.exact
            error, recovered = found.error, found.recovered
        spent = move.spent + spent
        return Iterate(
            iteration=iteration,
            theta=move.theta,
            gradient=value,
            memory=move.memory,
            loss=float(loss),
            norm=norm,
            first_norm=norm if before is None else before.first_norm,
            step=move.step,
            tolerance=tolerance,
            recovered=recovered,
            exact=exact,
            error=error,
            seconds=elapsed(),
            dollars=(0.0 if before is None else before.dollars) + spent.dollars,
            runs=spent.runs,
        )


def _norm(value: Array) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.linalg.norm(value))


def _stagnated(at: Iterate) -> Ending:
    message = (
        f"no step descends any further: the gradient's norm {at.norm:.3g} is what rounding, or "
        "nearly collinear columns, leave of it; ridge (--l2) makes the problem better conditioned"
    )
    return Ending("stagnated", at, message)


def _diverged(best: Iterate, last: Iterate) -> Ending:
    message = (
        f"the step of {last.step:g} diverges: the loss is {last.loss:.3g} in iteration "
        f"{last.iteration}; theta is that of iteration {best.iteration}, with the least loss, "
        f"{best.loss:.9g}. Use a smaller step, or --step line, which cannot diverge"
    )
    return Ending("diverged", best, message)
