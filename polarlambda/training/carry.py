"""Carry a training from its last checkpoint to an end, and write down how it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from blockstore.training_keys import theta_key
from blockstore.training_records import TrainingSpec, TrainingStatus
from blockstore.trainings import TrainingStore
from polarlambda.errors import PlatformError
from polarlambda.training.centred import Centred
from polarlambda.training.checkpoints import Checkpoints, load_history, load_iterate
from polarlambda.training.gradients import NOTHING, ProductFailed, Spent
from polarlambda.training.iterate import Iterate
from polarlambda.training.loop import Descent, Ending
from polarlambda.training.models import Array
from polarlambda.training.trained import Trained

if TYPE_CHECKING:
    from polarlambda.training.labels import Targets

LIMITS = ("iterations", "seconds", "dollars")


@dataclass(frozen=True)
class Carrier:
    """A training that is there: `wanted` says whether ending at a limit leaves a goal unmet."""

    store: TrainingStore
    spec: TrainingSpec
    targets: Targets
    descent: Descent
    wanted: bool
    on_iterate: Callable[[Iterate], None] = lambda at: None

    def run(self, spent: Spent = NOTHING) -> Trained:
        """Descend from where the checkpoints are; `spent` before the first of them.

        Ctrl-C ends it in state "stopped" with what there is; a product that fails in state
        "failed". Raises `TrainingTaken`; if there is no gradient at all, `PlatformError`, or
        `KeyboardInterrupt` after Ctrl-C.
        """
        history = load_history(self.store)
        checkpoints = Checkpoints(self.store, history, self._leave)
        resume = None
        if history:
            resume = load_iterate(self.store, history[-1].iteration, self._enter)
        checkpoints.last = resume
        self.store.put_status(TrainingStatus(training=self.spec.training, state="running"))

        def keep(at: Iterate) -> None:
            checkpoints.put(at)
            self.on_iterate(replace(at, theta=self._leave(at.theta)))

        try:
            ending = self.descent.run(
                keep,
                resume=resume,
                first_loss=history[0].loss if history else None,
                spent=spent,
            )
        except ProductFailed as failure:
            self._fail(str(failure), failure.state)
            if failure.state == "stopped":  # Ctrl-C, which the product has taken for itself
                raise KeyboardInterrupt from failure
            raise PlatformError(
                f"no gradient could be computed: {failure}; go on with `polarlambda train --resume "
                f"{self.spec.training}`"
            ) from failure
        except KeyboardInterrupt:
            if checkpoints.last is None:
                self._fail("interrupted", "stopped")
                raise
            ending = Ending("stopped", checkpoints.last, "interrupted")
        return self._conclude(ending, checkpoints)

    def _leave(self, theta: Array) -> Array:
        source = self.descent.source
        return source.leave(theta) if isinstance(source, Centred) else theta

    def _enter(self, theta: Array) -> Array:
        source = self.descent.source
        return source.enter(theta) if isinstance(source, Centred) else theta

    def _fail(self, message: str, state: str) -> None:
        state = "stopped" if state in ("stopped", "cancelled") else "failed"
        self.store.put_status(
            TrainingStatus(training=self.spec.training, state=state, message=message)
        )

    def _conclude(self, ending: Ending, checkpoints: Checkpoints) -> Trained:
        at, history = ending.at, checkpoints.history
        if ending.state == "diverged":  # an earlier process may have been lower
            best = min(history, key=lambda facts: facts.loss).iteration
            at = at if at.iteration == best else load_iterate(self.store, best, self._enter)
        theta = self._leave(at.theta)
        theta = theta[:, 0] if theta.shape[1] == 1 else theta
        met = ending.state == "converged" or (ending.state in LIMITS and not self.wanted)
        trained = Trained(
            training=self.spec.training,
            state=ending.state,
            met=met,
            message=ending.message,
            theta=np.ascontiguousarray(theta),
            loss=at.loss,
            gradient_norm=at.norm,
            iteration=at.iteration,
            seconds=history[-1].seconds,
            dollars=history[-1].dollars,
            model=self.spec.model,
            intercept=self.spec.intercept,
            classes=self.targets.classes,
            notes=self.spec.notes,
            history=tuple(history),
        )
        key = theta_key(self.spec.training)
        self.store.put_theta(trained.theta)
        self.store.put_report(trained.to_json(theta_path=key))
        self.store.put_status(
            TrainingStatus(
                training=self.spec.training,
                state=ending.state,
                message=ending.message,
                best=at.iteration,
            )
        )
        return trained
