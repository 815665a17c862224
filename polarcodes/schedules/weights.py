"""How recovered tasks follow from the values of the messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.checks import first_not_finite_row
from polarcodes.errors import InvalidAnswers

if TYPE_CHECKING:
    from polarcodes.schedules.schedule import Schedule

_EXACT = 1e-6  # largest error of a reproduced unit vector
_NOTHING = 1e-12  # weights below it are rounding


@dataclass(frozen=True)
class RecoveryWeights:
    """Weights that turn messages into tasks: value of task ``tasks[i]`` = ``matrix[i]`` @ Y.

    Attributes
    ----------
    tasks : (q,) intp
        The recovered tasks, ascending. Empty when the sum is what is recovered (``is_sum``).
    messages : tuple of (worker, message, part)
        What each of the m rows of Y is: ``part`` counts the rows of one message's value (0 unless
        results are sent together). Redundant messages are not among them.
    matrix : (q, m) float64
        With ``is_sum`` one row, whose value is the sum of all tasks.
    amplification : (q,) float64
        Norm of each row: a task's rms error over that of one message's value.
    """

    tasks: NDArray[np.intp]
    messages: tuple[tuple[int, int, int], ...]
    matrix: NDArray[np.float64] = field(repr=False)
    is_sum: bool = False

    @property
    def amplification(self) -> NDArray[np.float64]:
        """Norm of each row of the matrix."""
        return np.asarray(np.linalg.norm(self.matrix, axis=1), dtype=np.float64)

    def apply(self, Y: Any) -> NDArray[Any]:
        """Return the tasks' values, Y (m, L) in the order of ``messages`` -> (q, L).

        float32 values give float32, wider ones and integers float64. Tasks that arrived as they are
        cost a copy each, the others q m L multiplications. Raises
        :class:`~polarcodes.errors.InvalidAnswers` for a wrong shape or type, NaN or infinity.
        """
        values = np.asarray(Y)
        if values.ndim != 2 or len(values) != len(self.messages):
            raise InvalidAnswers(
                f"Y must have shape ({len(self.messages)}, L), one row for each entry of "
                f"messages, got {values.shape}"
            )
        if values.dtype.kind not in "biuf" or values.dtype.itemsize > 8:
            raise InvalidAnswers(f"Y must be real numbers of at most 64 bits, got {values.dtype}")
        bad = first_not_finite_row(values)
        if bad is not None:
            worker, message, _ = self.messages[bad]
            raise InvalidAnswers(
                f"Y must be finite, got NaN or infinity in message {message} of worker {worker}"
            )
        narrow = values.dtype.kind == "f" and values.dtype.itemsize <= 4
        out = np.empty((len(self.matrix), values.shape[1]), np.float32 if narrow else np.float64)
        if not len(self.matrix):
            return out
        used = self.matrix != 0
        direct = used.sum(axis=1) == 1
        source = used[direct].argmax(axis=1)
        out[direct] = self.matrix[direct, source][:, None] * values[source]
        if not direct.all():
            rows = used[~direct].any(axis=0)
            out[~direct] = self.matrix[np.ix_(~direct, rows)] @ values[rows]
        return out


def solve_weights(
    schedule: Schedule, messages: Sequence[tuple[int, int, int]], recovered: NDArray[np.bool_]
) -> RecoveryWeights:
    """Return the weights of the recovered tasks; ``messages`` are independent equations."""
    is_sum = schedule.sending == "sum"
    tasks = np.flatnonzero(recovered)
    wanted = np.zeros((1 if is_sum else tasks.size, schedule.tasks))
    if is_sum:
        wanted[:] = 1.0
    else:
        wanted[np.arange(tasks.size), tasks] = 1.0
    none = np.zeros((0, len(messages)))
    if not tasks.size:
        return RecoveryWeights(tasks, tuple(messages), none, is_sum)
    rows = np.zeros((len(messages), schedule.tasks))
    for row, (worker, message, part) in zip(rows, messages, strict=True):
        equation = schedule.equations(worker, message)[part]
        row[equation.tasks] = equation.values
    Q, R = np.linalg.qr(rows.T)
    matrix = np.linalg.solve(R, Q.T @ wanted.T).T
    matrix[np.abs(matrix) <= _NOTHING * np.abs(matrix).max(axis=1, keepdims=True)] = 0.0
    sound = np.abs(matrix @ rows - wanted).max(axis=1) <= _EXACT
    kept = np.zeros(0, np.intp) if is_sum else tasks[sound]
    return RecoveryWeights(kept, tuple(messages), matrix[sound], is_sum)
