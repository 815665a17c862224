"""Which tasks the messages that arrived determine: elimination, one message at a time.

The equations are kept in reduced row echelon form: every pivot column is zero outside its own row,
so a task is determined exactly when its row has no other entry ("its unit vector lies in the row
space", arXiv 1811.09271). Row p of the form is stored at index p, its pivot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from polarcodes.schedules.checks import needed
from polarcodes.schedules.weights import RecoveryWeights, solve_weights

if TYPE_CHECKING:
    from polarcodes.schedules.schedule import Codeword, Schedule

_ZERO = 1e-9  # relative size below which a difference counts as rounding


class Recovery:
    """The decoder's state: messages go in one by one, the recovered tasks are known at any moment.

    Cost of a message: nothing but look-ups when all its tasks are known or all but one are
    (peeling); else the pivot rows it touches, at most O(M^2) and for a thousand tasks around a
    millisecond. Pivots are the largest entries, so that codes with real coefficients (MCC, gradient
    coding) stay sound: a pivot below 1e-9 of what cancelled counts as zero.
    """

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        tasks = schedule.tasks
        self._form: NDArray[np.float64] = np.zeros((tasks, tasks))
        self._pivot: NDArray[np.bool_] = np.zeros(tasks, np.bool_)
        self._known: NDArray[np.bool_] = np.zeros(tasks, np.bool_)
        self._largest: NDArray[np.float64] = np.ones(tasks)
        self._seen: set[tuple[int, int]] = set()
        self._informative: list[tuple[int, int, int]] = []
        # What is left of (1, ..., 1) after elimination: the sum is determined when nothing is.
        self._sum_left: NDArray[np.float64] | None = None
        if schedule.sending == "sum":
            self._sum_left = np.ones(tasks)
        self._sum_largest = 1.0

    def add(self, worker: int, message: int = 0) -> bool:
        """Take note of a worker's message (counted from 0); return whether it told anything new.

        A message that was there before changes nothing. Raises
        :class:`~polarcodes.errors.InvalidWorkers` for one that the schedule does not have.
        """
        equations = self._schedule.equations(worker, message)
        if (worker, message) in self._seen:
            return False
        self._seen.add((worker, message))
        news = False
        for part, equation in enumerate(equations):
            if self._add(equation):
                self._informative.append((worker, message, part))
                news = True
        return news

    @property
    def messages(self) -> int:
        """How many different messages have arrived."""
        return len(self._seen)

    @property
    def rank(self) -> int:
        """How many independent equations have arrived."""
        return len(self._informative)

    @property
    def recovered_mask(self) -> NDArray[np.bool_]:
        """Whether each task is recovered, shape (M,); a copy.

        For gradient coding all tasks are once their sum is, and none before.
        """
        if self._sum_left is None:
            return self._known.copy()
        return np.full(self._schedule.tasks, self._sum_is_known())

    @property
    def recovered(self) -> tuple[int, ...]:
        """The recovered tasks, ascending."""
        return tuple(np.flatnonzero(self.recovered_mask).tolist())

    @property
    def missing(self) -> tuple[int, ...]:
        """The other tasks, ascending."""
        return tuple(np.flatnonzero(~self.recovered_mask).tolist())

    def complete(self, tolerance: float = 0.0) -> bool:
        """Return whether at most this share of the tasks, in [0, 1), is missing."""
        count = int(np.count_nonzero(self.recovered_mask))
        return count >= needed(self._schedule.tasks, tolerance)

    def weights(self) -> RecoveryWeights:
        """Return how the recovered tasks (or the sum) follow from the messages' values.

        Cost O(M^3), once, from the original equations: the roundoff of the elimination does not
        enter. A task that these cannot reproduce to 1e-6 is left out, as not recovered.
        """
        return solve_weights(self._schedule, self._informative, self.recovered_mask)

    def _sum_is_known(self) -> bool:
        left = self._sum_left
        return left is not None and bool(np.abs(left).max() <= _ZERO * self._sum_largest)

    def _add(self, equation: Codeword) -> bool:
        unknown = ~self._known[equation.tasks]
        tasks, values = equation.tasks[unknown], equation.values[unknown]
        if not tasks.size:
            return False
        scale = float(np.abs(values) @ self._largest[tasks])
        if tasks.size == 1 and not self._pivot[tasks[0]]:
            row = np.zeros(self._schedule.tasks)
            pivot = int(tasks[0])
            row[pivot] = 1.0
        else:
            reducible = self._pivot[tasks]
            row = -(values[reducible] @ self._form[tasks[reducible]])
            row[tasks] += values
            row[tasks[reducible]] = 0.0
            row[np.abs(row) <= _ZERO * scale] = 0.0
            pivot = int(np.abs(row).argmax())
            if row[pivot] == 0.0:
                return False
            row /= row[pivot]
        self._eliminate(pivot, row)
        return True

    def _eliminate(self, pivot: int, row: NDArray[np.float64]) -> None:
        """Clear the new pivot's column in every other row, and store the new row."""
        columns = np.flatnonzero(row)
        touched = np.flatnonzero(self._form[:, pivot])
        if touched.size:
            factors = self._form[touched, pivot]
            block = np.ix_(touched, columns)
            left = self._form[block] - factors[:, None] * row[columns]
            left[np.abs(left) <= _ZERO * np.maximum(1.0, np.abs(factors))[:, None]] = 0.0
            self._form[block] = left
            rows = self._form[touched]
            self._largest[touched] = np.abs(rows).max(axis=1)
            self._known[touched] = np.count_nonzero(rows, axis=1) == 1
        self._form[pivot] = row
        self._pivot[pivot] = True
        self._known[pivot] = columns.size == 1
        if self._sum_left is not None:
            self._sum_left -= self._sum_left[pivot] * row
            self._sum_largest = max(self._sum_largest, float(np.abs(self._sum_left).max()))
