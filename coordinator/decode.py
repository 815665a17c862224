"""The exact product from a decisive set of answers, and the check by left-over equations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.subtasks import Subtasks
from coordinator.answers import AnswerSet
from coordinator.check import Check
from coordinator.judge import answer_error, tolerance
from polarcodes import DecodingPlan, ErasureCode

__all__ = ["Decoder", "Decoding", "conclude", "decode"]

ROUNDING = 1000.0  # growth of rounding errors in decoding that is no contradiction (N = 4096)
SPREAD = 10.0  # an equation may be this much worse than the predicted error of the product
DECIDED = (
    100.0  # a decided set stays decided where LAPACK rounds differently, or N do not do better
)
ORDINARY = 40  # powers of two around 1 within which float32 can be squared and summed


@dataclass(frozen=True)
class Decoding:
    """value: (n,) or (n, k), in the dtype of the answers; None if it is in the store only.

    verified: there were left-over equations and all of them hold; `verification` says so in words.
    contradiction: the text of equations that do not hold, None if there are none.
    method: which decoder; error: predicted relative rms error of the value that the rounding of
    the answers leads to (cancellation within the workers' own sums comes on top).
    """

    value: NDArray[Any] | None
    verified: bool
    verification: str
    contradiction: str | None
    method: str
    error: float

    @property
    def how(self) -> str:
        """The decoder and its predicted error in words."""
        return f"{self.method} decoder, predicted rounding error {self.error:.1e}"


class Decoder:
    """Decodes columns of a decisive set of answers, and checks them by re-encoding.

    Parameters
    ----------
    plan : how the answers of the set are decoded; `plan.workers` is their order
    epsilon : relative rounding of an answer
    scale : rms of ||row|| ||x|| over the set (`AnswerSet.scale`)
    predicted : relative rms error of the product by the rounding of the answers

    A function of the set and its answers alone: the same bytes in any order, at any time, by any
    number of processes. What m answers leave over of s unknown blocks are m - s equations per
    column. Where the product cancels (A x much smaller than |A| |x|), rounding in the workers' own
    sums is no contradiction: it is allowed for by the scale that they report. Nor is rounding in
    the encoder (blocks in float32, x and answers in float64).
    """

    def __init__(
        self,
        code: ErasureCode,
        plan: DecodingPlan,
        *,
        epsilon: float,
        scale: float,
        predicted: float,
    ) -> None:
        self.code, self.plan = code, plan
        self.epsilon, self.scale, self.predicted = epsilon, scale, predicted
        self.equations = len(plan.workers) - code.data_blocks
        self._growth = max(ROUNDING, SPREAD * predicted / epsilon)

    @classmethod
    def of(cls, code: ErasureCode, answers: AnswerSet[Any], decisive: Sequence[int]) -> Decoder:
        """The decoder of a set; raises `polarcodes.NotDecodable` if it determines no product."""
        places = tuple(sorted(decisive))
        one, form = answer_error(answers.form), answers.form
        plan = code.plan(places, answer_error=one, tolerance=DECIDED * tolerance(form))
        predicted = plan.predicted_error(one)
        return cls(
            code, plan, epsilon=form.epsilon, scale=answers.scale(places), predicted=predicted
        )

    def apply(self, Y: NDArray[Any], out: NDArray[Any]) -> Check:
        """Decode the columns Y (m, columns) into `out` (s, columns), which may be rows of Y itself,
        and check them."""
        product = self.plan.apply(Y.astype(np.float64))
        check = self._check(Y, product) if self.equations > 0 else Check()
        with np.errstate(over="ignore"):
            out[...] = product
        return check

    def _check(self, Y: NDArray[Any], X: NDArray[Any]) -> Check:
        power = _power(Y)
        if power:
            Y, X = np.ldexp(Y, -power), np.ldexp(X, -power)
        residual = self.code.residual(self.plan.workers, Y, X)
        size = float(np.sqrt(np.mean(np.square(Y, dtype=np.float64))))
        rounding = self._growth * self.epsilon
        scaled = float(np.ldexp(rounding * self.scale, -power))
        allowed = max(residual.tolerance, rounding, scaled / size if size else np.inf)
        holds = residual.worst <= allowed
        return Check(residual.relative, None if holds else residual.worst_worker)


def decode(code: ErasureCode, answers: AnswerSet[Any], decisive: Sequence[int]) -> Decoding:
    """Decode A x from the answers of `decisive`, in float64, by chunks of columns.

    Memory besides the answers: the product and one chunk. Raises `polarcodes.NotDecodable` if the
    set does not determine the product.
    """
    decoder = Decoder.of(code, answers, decisive)
    places, form = decoder.plan.workers.tolist(), answers.form
    product = np.empty((form.data_blocks, form.length), form.dtype)
    check = Check()
    for first, last in answers.chunks(places):
        check += decoder.apply(answers.gather(places, first, last), product[:, first:last])
    return conclude(decoder, check, form.shares, form.layout.assemble(product))


def conclude(
    decoder: Decoder, check: Check, shares: Subtasks, value: NDArray[Any] | None
) -> Decoding:
    """What all columns together say of the product."""
    equations, method, predicted = decoder.equations, decoder.plan.method, decoder.predicted
    if equations <= 0:
        text = f"not verified: {len(decoder.plan.workers)} answers leave no equation over"
        return Decoding(value, False, text, None, method, predicted)
    if check.suspect is None:
        text = f"{equations} left-over equations per column hold (residual {check.worst:.1e})"
        return Decoding(value, True, text, None, method, predicted)
    text = (
        f"{equations} left-over equations per column do not hold (residual {check.worst:.1e}): an "
        f"answer is wrong, perhaps that of {shares.describe(check.suspect)}. Nothing exact was "
        "written; encode the matrix again, or start a new run"
    )
    return Decoding(value, False, text, text, method, predicted)


def _power(Y: NDArray[Any]) -> int:
    """The power of two by which answers are divided before they are squared; 0 for ordinary ones,
    whose squares neither overflow nor vanish."""
    power = int(np.frexp(max(float(Y.max(initial=0.0)), -float(Y.min(initial=0.0))))[1])
    return power if abs(power) > ORDINARY else 0
