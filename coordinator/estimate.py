"""The estimate of the product from the answers that are here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coordinator.answers import AnswerSet
from coordinator.check import Check
from coordinator.form import AnswerForm
from coordinator.inputs import InputRefused
from polarcodes import ErasureCode, InvalidCode, estimate_product
from polarcodes.estimators import METRICS, choose_estimator, estimator_errors
from polarcodes.least_squares import DENSE_ROWS

__all__ = [
    "ESTIMATORS",
    "METRICS",
    "Estimates",
    "Estimation",
    "ProductEstimate",
    "check_estimator",
    "estimate",
]

ESTIMATORS = {
    "best": "best",
    "paper": "sketch",
    "shrinkage": "shrinkage",
    "least-squares": "least-squares",
    "hybrid": "hybrid",
}
"""What people ask for, and its name in polarcodes.estimators."""

COSTLY = ("least-squares", "hybrid")
MOST_BYTES = 16 << 20  # of float64 answers, so that least squares takes a second at most


@dataclass(frozen=True)
class ProductEstimate:
    """value: (n,) or (n, k), in the dtype of the answers, None if it is only in the store; error
    and error_upper: predicted relative error in the metric asked for, rms and 95 % bound;
    absolute: predicted rms of ||value - A x||, or of inner products with vectors of norm 1."""

    value: NDArray[Any] | None
    error: float
    error_upper: float
    absolute: float
    method: str


def check_estimator(code: ErasureCode, estimator: str, metric: str = "vector") -> str:
    """Return the name; raises `InputRefused` for one that there is not, or that the code has not.

    metric: "vector", errors of A x relative to its norm; "inner", errors of c^T A x for vectors c
    chosen beforehand, relative to ||c|| ||A x||.

    "best": the least predicted error of A x, the default and the only one of codes without a
    transform; "paper": the unbiased one of arXiv 2309.00682; "shrinkage"; "least-squares";
    "hybrid": polar codes only, what sequential decoding has settled and "paper" for the rest.
    """
    if metric not in METRICS:
        raise InputRefused(f"metric must be one of {', '.join(METRICS)}, got {metric!r}")
    if estimator not in ESTIMATORS:
        raise InputRefused(f"estimator must be one of {', '.join(ESTIMATORS)}, got {estimator!r}")
    try:
        choose_estimator(code, (), ESTIMATORS[estimator], metric=metric)
    except InvalidCode as exc:
        raise InputRefused(
            f"estimator {estimator!r}, metric {metric!r}: {exc}; leave them at best and vector"
        ) from exc
    return estimator


class Estimation:
    """Estimates A x from the answers of `places` (at least one), columns by columns.

    `estimator`: one of `ESTIMATORS`. "best" never takes least squares for more than `MOST_BYTES` of
    answers or `DENSE_ROWS` of them: no arrival is seen meanwhile. Cost: O(N log N) per column;
    O(s m) for least squares.
    """

    def __init__(
        self,
        code: ErasureCode,
        form: AnswerForm,
        places: Sequence[int],
        estimator: str = "best",
        metric: str = "vector",
    ) -> None:
        self._code, self._places, self._metric = code, places, metric
        self._wanted = ESTIMATORS[estimator]
        large = len(places) * form.length * 8 > MOST_BYTES or len(places) > DENSE_ROWS
        if self._wanted == "best" and large:
            self._wanted = _affordable(code, places, metric)
        self.absolute = self.error = self.error_upper = 0.0
        self.method = ""

    def solve(self, Y: NDArray[Any], out: NDArray[Any]) -> Check:
        """Estimate the columns Y (m, columns) into `out` (s, columns); may be rows of Y itself."""
        with np.errstate(over="ignore"):  # beyond the dtype: inf, and the exact product may not be
            part = estimate_product(
                self._code, self._places, Y, method=self._wanted, metric=self._metric
            )
            out[...] = part.value
        self.absolute = math.hypot(self.absolute, part.absolute_error)
        # of the set, not the columns
        self.error, self.error_upper = part.relative_error, part.relative_error_upper
        self.method = part.method
        return Check()

    def result(self, value: NDArray[Any] | None) -> ProductEstimate:
        """What all columns came to."""
        return ProductEstimate(value, self.error, self.error_upper, self.absolute, self.method)


def estimate(
    code: ErasureCode,
    answers: AnswerSet[Any],
    places: Sequence[int],
    estimator: str = "best",
    metric: str = "vector",
) -> ProductEstimate:
    """Estimate A x from the answers of `places`, in memory: see `Estimation`.

    Memory besides the answers: the estimate itself and one chunk.
    """
    form = answers.form
    estimation = Estimation(code, form, places, estimator, metric)
    product = np.empty((form.data_blocks, form.length), form.dtype)
    for first, last in answers.chunks(places):
        estimation.solve(answers.gather(places, first, last), product[:, first:last])
    return estimation.result(form.layout.assemble(product))


class Estimates:
    """The estimates of one run; the latest is kept, so that asking again costs nothing.

    With `shift` (`coordinator.reference.Reference.shift`) the answers are those to a change
    A (x - x_ref), and the estimates are of A x.
    """

    def __init__(
        self,
        code: ErasureCode,
        answers: AnswerSet[Any],
        estimator: str,
        shift: Callable[[ProductEstimate], ProductEstimate] | None = None,
        *,
        metric: str = "vector",
    ) -> None:
        self._code, self._answers, self._estimator = code, answers, estimator
        self._metric = metric
        self._shift = shift
        self._latest: tuple[frozenset[int], ProductEstimate] | None = None
        self._share = 1.0

    def of(self, places: Sequence[int]) -> ProductEstimate:
        """From the answers at these places, at least one. It is not to be changed."""
        asked = frozenset(places)
        if self._latest is None or self._latest[0] != asked:
            found = change = estimate(
                self._code, self._answers, places, self._estimator, self._metric
            )
            if self._shift is not None:
                found = self._shift(change)
                self._share = found.error / change.error if change.error else 0.0
            self._latest = asked, found
        return self._latest[1]

    @property
    def share(self) -> float:
        """||A (x - x_ref)|| over ||A x|| by the latest estimate, made now if there is none; 1
        without a reference."""
        if self._shift is not None and self._latest is None:
            self.of(sorted(self._answers.metadata))
        return self._share


def _affordable(code: ErasureCode, workers: Sequence[int], metric: str) -> str:
    """The best without least squares, which alone costs more than one transform a column."""
    if choose_estimator(code, workers, metric=metric)[0] not in COSTLY:
        return "best"
    errors = estimator_errors(code, workers, metric=metric)
    return min((name for name in errors if name not in COSTLY), key=lambda name: errors[name])
