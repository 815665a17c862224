"""Iterates to checkpoints and back."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from blockstore.trainings import Facts, TrainingStore
from polarlambda.training.iterate import Iterate
from polarlambda.training.models import Array

READS = 16  # at a time


class Checkpoints:
    """Writes every iterate as it comes, in this process's name, and keeps the history.

    leave : from the descent's coordinates to theta's. Raises `TrainingTaken` when another process
    has written the same iteration.
    """

    def __init__(
        self, store: TrainingStore, history: list[Facts], leave: Callable[[Array], Array]
    ) -> None:
        self._store = store
        self._leave = leave
        self._writer = os.urandom(8).hex()
        self.history = history
        self.last: Iterate | None = None

    def put(self, at: Iterate) -> None:
        """Write one, which is then the last."""
        facts = Facts(
            iteration=at.iteration,
            loss=at.loss,
            norm=at.norm,
            first_norm=at.first_norm,
            step=at.step,
            tolerance=at.tolerance,
            recovered=at.recovered,
            exact=at.exact,
            error=at.error,
            seconds=at.seconds,
            dollars=at.dollars,
            runs=at.runs,
            writer=self._writer,
        )
        state = np.concatenate([self._leave(at.theta)[None], at.gradient[None], at.memory])
        self._store.put_checkpoint(facts, state)
        self.history.append(facts)
        self.last = at


def load_iterate(store: TrainingStore, iteration: int, enter: Callable[[Array], Array]) -> Iterate:
    """The iterate of a checkpoint, from which the training can go on; `enter` : from theta's
    coordinates to the descent's."""
    facts, state = store.get_checkpoint(iteration)
    return Iterate(
        iteration=facts.iteration,
        theta=enter(state[0]),
        gradient=state[1],
        memory=state[2:],
        loss=facts.loss,
        norm=facts.norm,
        first_norm=facts.first_norm,
        step=facts.step,
        tolerance=facts.tolerance,
        recovered=facts.recovered,
        exact=facts.exact,
        error=facts.error,
        seconds=facts.seconds,
        dollars=facts.dollars,
        runs=facts.runs,
    )


def load_history(store: TrainingStore) -> list[Facts]:
    """The facts of all checkpoints, in order. Cost: a listing and a HEAD for each."""
    iterations = sorted(store.list_checkpoints())
    with ThreadPoolExecutor(READS, thread_name_prefix="history") as pool:
        return list(pool.map(store.get_facts, iterations))
