"""The loop around iterations: limits, checkpoints, status, report."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from blockstore.optimizations import OptimizationStore
from coordinator.evaluation_round import AllFailed
from polarlambda.errors import PlatformError
from polarlambda.optimization.iteration import Place, final_scores, iterate
from polarlambda.optimization.options import Options
from polarlambda.optimization.result import FinalScore, OptimizationResult
from polarlambda.optimization.state import Figures, State

__all__ = ["OptimizationRun"]


@dataclass
class OptimizationRun:
    """One coordinator's part in an optimisation.

    state : the newest checkpoint's; writer : a name that no other coordinator has
    """

    store: OptimizationStore
    place: Place
    objective: str
    options: Options
    state: State
    history: list[Figures] = field(default_factory=list)
    on_iteration: Callable[[Figures], None] | None = None
    writer: str = field(default_factory=lambda: os.urandom(8).hex())

    def run(self) -> OptimizationResult:
        """Iterate until a limit, the target, a failure of every evaluation, or somebody's wish.

        Ctrl-C ends it with the last checkpoint, and it can be resumed; so it can after any error
        that this raises: those of the store, and `PlatformError` when another coordinator has gone
        on with the same optimisation.
        """
        ending = ("stopped", "interrupted")
        final = None
        try:
            ending = self._iterate()
            final = self._finals() if self.options.final else None
        except AllFailed as failure:
            ending = ("failed", str(failure))
        except KeyboardInterrupt:
            self._put_status("stopped")
        state, message = ending
        theta = self.state.best if final is None else final[0]
        wanted = ("target",) if self.options.target is not None else ("finished", "target")
        result = OptimizationResult(
            optimization=self.store.optimization,
            objective=self.objective,
            theta=theta,
            state=state,
            met=state in wanted,
            message=message,
            maximize=self.options.maximize,
            final=None if final is None else final[1],
            figures=self.state.figures,
            history=tuple(self.history),
        )
        self._put_status(state)
        self.store.put_report(self._report(result))
        return result

    def _iterate(self) -> tuple[str, str]:
        while True:
            ending = self._ending()
            if ending is not None:
                return ending
            state = iterate(
                self.place, self.store.optimization, self.objective, self.options, self.state
            )
            figures = state.figures
            written = self.store.put_checkpoint(
                figures.iteration, state.to_array(), figures.to_metadata(), self.writer
            )
            if not written:
                raise PlatformError(
                    f"optimisation {self.store.optimization} is being carried on by another "
                    "process, which has done this iteration: watch it, or end that one first"
                )
            self.state = state
            self.history.append(figures)
            self._put_status("running")
            if self.on_iteration is not None:
                self.on_iteration(figures)

    def _ending(self) -> tuple[str, str] | None:
        """(state, why) if there must not be another iteration."""
        options, figures = self.options, self.state.figures
        if self._on_target(figures):
            return "target", f"the score has reached {options.target:g}"
        if figures.iteration >= options.iterations:
            return "finished", f"{figures.iteration} iterations are done"
        next_evaluations = 2 * options.count(self.state.theta.size)
        limits = (
            ("evaluations", figures.evaluations + next_evaluations, options.evaluations),
            ("seconds", figures.seconds, options.seconds),
            ("dollars", figures.dollars + _mean_dollars(figures), options.dollars),
        )
        for name, value, limit in limits:
            if limit is not None and value > limit:
                return "finished", f"the limit of {limit:g} {name} leaves no further iteration"
        if self.store.cancelled():
            return "cancelled", "it was cancelled on request"
        return None

    def _on_target(self, figures: Figures) -> bool:
        target, score = self.options.target, figures.score
        if target is None or score is None:
            return False
        return score >= target if self.options.maximize else score <= target

    def _finals(self) -> tuple[Any, FinalScore]:
        """The better of the last and the best-scoring theta, on seeds of their own."""
        number = 2 * self.state.figures.iteration
        scored = []
        for offset, theta in enumerate((self.state.theta, self.state.best)):
            name = self.store.optimization
            found = final_scores(
                self.place, name, self.objective, self.options, theta, number + offset
            )
            scored.append((theta, found))
        sign = 1 if self.options.maximize else -1
        return max(scored, key=lambda pair: sign * pair[1].mean)

    def _put_status(self, state: str) -> None:
        self.store.put_status(
            {
                "version": 1,
                "optimization": self.store.optimization,
                "objective": self.objective,
                "state": state,
                "history": [figures.to_json() for figures in self.history],
            }
        )

    def _report(self, result: OptimizationResult) -> dict[str, Any]:
        return {
            "version": 1,
            **result.to_json(),
            "options": self.options.to_json(),
            "history": [figures.to_json() for figures in self.history],
        }


def _mean_dollars(figures: Figures) -> float:
    return figures.dollars / figures.iteration if figures.iteration else 0.0
