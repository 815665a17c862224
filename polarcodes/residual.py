"""The left-over equations: does a decoded product explain every answer that was used?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_TOLERANCE = {"float32": 3e-4, "float64": 1e-9}


@dataclass(frozen=True)
class Residual:
    """How well the re-encoded product agrees with the answers.

    Attributes
    ----------
    equations : int
        m - s for each column. With none left over any wrong answer decodes to a product that
        agrees with it: nothing was verified.
    relative : float
        rms of the disagreement over the rms of the answers; inf when the answers are all zero and
        the product is not.
    worst : float
        The same for the one worker that disagrees most, over the rms of all answers.
    worst_worker : int or None
        That worker. With many left-over equations it points at the wrong answer, but a decoder that
        spreads errors may point elsewhere.
    tolerance : float
        What rounding explains for answers of this dtype, decoding errors included.
    """

    equations: int
    relative: float
    worst: float
    worst_worker: int | None
    tolerance: float

    @property
    def consistent(self) -> bool:
        """Whether rounding explains the disagreement of every worker."""
        return self.worst <= self.tolerance

    @property
    def verified(self) -> bool:
        """Whether there were left-over equations and all of them hold."""
        return self.equations > 0 and self.consistent


def compare(
    answers: NDArray[Any], expected: NDArray[Any], workers: NDArray[np.intp], data_blocks: int
) -> Residual:
    """Compare the answers Y with what the decoded product says they should be, both (m, L)."""
    tolerance = _TOLERANCE[answers.dtype.name]
    squares = np.zeros(len(workers))
    energy = 0.0
    for row, (answer, other) in enumerate(zip(answers, expected, strict=True)):
        squares[row] = np.linalg.norm(answer - other) ** 2
        energy += float(np.linalg.norm(answer)) ** 2
    equations = len(workers) - data_blocks
    if not squares.any():
        return Residual(equations, 0.0, 0.0, None, tolerance)
    if energy == 0.0:
        return Residual(equations, np.inf, np.inf, int(workers[squares.argmax()]), tolerance)
    relative = float(np.sqrt(squares.sum() / energy))
    worst = float(np.sqrt(squares.max() * len(workers) / energy))
    return Residual(equations, relative, worst, int(workers[squares.argmax()]), tolerance)
