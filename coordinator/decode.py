"""The exact product from a decisive set of answers, and the check by left-over equations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coordinator.answers import Answers
from coordinator.judge import answer_error, tolerance
from polarcodes import ErasureCode

__all__ = ["Decoding", "decode"]

ROUNDING = 1000.0  # growth of rounding errors in decoding that is no contradiction (N = 4096)
SPREAD = 10.0  # an equation may be this much worse than the predicted error of the product
DECIDED = (
    100.0  # a decided set stays decided where LAPACK rounds differently, or N do not do better
)
ORDINARY = 40  # powers of two around 1 within which float32 can be squared and summed


@dataclass(frozen=True)
class Decoding:
    """value: (n,) or (n, k), in the dtype of the answers.

    verified: there were left-over equations and all of them hold; `verification` says so in words.
    contradiction: the text of equations that do not hold, None if there are none.
    method: which decoder; error: predicted relative rms error of the value that the rounding of
    the answers leads to (cancellation within the workers' own sums comes on top).
    """

    value: NDArray[Any]
    verified: bool
    verification: str
    contradiction: str | None
    method: str
    error: float

    @property
    def how(self) -> str:
        """The decoder and its predicted error in words."""
        return f"{self.method} decoder, predicted rounding error {self.error:.1e}"


def decode(code: ErasureCode, answers: Answers, decisive: Sequence[int]) -> Decoding:
    """Decode A x from the answers of `decisive`, in float64, by chunks of columns.

    A function of the set and its answers alone: the same bytes in any order, at any time. What m
    answers leave over of s unknown blocks are m - s equations per column; every chunk is checked by
    re-encoding. Where the product cancels (A x much smaller than |A| |x|), rounding in the workers'
    own sums is no contradiction: it is allowed for by the scale that they report. Nor is rounding
    in the encoder (blocks in float32, x and answers in float64).

    Raises `polarcodes.NotDecodable` if the set does not determine the product.
    """
    workers = tuple(sorted(decisive))
    one = answer_error(answers)
    plan = code.plan(workers, answer_error=one, tolerance=DECIDED * tolerance(answers))
    predicted = plan.predicted_error(one)
    product = answers.empty_product()
    growth = max(ROUNDING, SPREAD * predicted / answers.epsilon)
    rounding = growth * answers.epsilon * answers.scale(workers)
    worst, suspect, equations = 0.0, None, len(workers) - code.data_blocks
    for first, last in answers.chunks(workers):
        Y = answers.gather(workers, first, last)
        X = plan.apply(Y.astype(np.float64))
        with np.errstate(over="ignore"):
            product[:, first:last] = X
        if equations <= 0:
            continue
        power = _power(Y)
        if power:
            Y, X = np.ldexp(Y, -power), np.ldexp(X, -power)
        residual = code.residual(workers, Y, X)
        size = float(np.sqrt(np.mean(np.square(Y, dtype=np.float64))))
        scaled = float(np.ldexp(rounding, -power))
        allowed = max(
            residual.tolerance, growth * answers.epsilon, scaled / size if size else np.inf
        )
        worst = max(worst, residual.relative)
        if not residual.worst <= allowed and suspect is None:
            suspect = residual.worst_worker
    value = answers.trim(product)
    if equations <= 0:
        text = f"not verified: {len(workers)} answers leave no equation over"
        return Decoding(value, False, text, None, plan.method, predicted)
    if suspect is None:
        text = f"{equations} left-over equations per column hold (residual {worst:.1e})"
        return Decoding(value, True, text, None, plan.method, predicted)
    whose = answers.shares.describe(suspect)
    text = (
        f"{equations} left-over equations per column do not hold (residual {worst:.1e}): an answer "
        f"is wrong, perhaps that of {whose}. Nothing exact was written; encode the matrix "
        "again, or start a new run"
    )
    return Decoding(value, False, text, text, plan.method, predicted)


def _power(Y: NDArray[Any]) -> int:
    """The power of two by which answers are divided before they are squared; 0 for ordinary ones,
    whose squares neither overflow nor vanish."""
    power = int(np.frexp(max(float(Y.max(initial=0.0)), -float(Y.min(initial=0.0))))[1])
    return power if abs(power) > ORDINARY else 0
