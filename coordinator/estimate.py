"""The estimate of the product from the answers that are here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coordinator.answers import AnswerSet
from coordinator.inputs import InputRefused
from polarcodes import ErasureCode, InvalidCode, estimate_product
from polarcodes.estimators import choose_estimator
from polarcodes.least_squares import DENSE_ROWS

__all__ = ["ESTIMATORS", "ProductEstimate", "check_estimator", "estimate"]

ESTIMATORS = {
    "best": "best",
    "paper": "sketch",
    "shrinkage": "shrinkage",
    "least-squares": "least-squares",
}
"""What people ask for, and its name in polarcodes.estimators."""

MOST_BYTES = 16 << 20  # of float64 answers, so that least squares takes a second at most


@dataclass(frozen=True)
class ProductEstimate:
    """value: (n,) or (n, k), in the dtype of the answers; error and error_upper: predicted relative
    error, rms and 95 % bound; absolute: predicted rms of ||value - A x||."""

    value: NDArray[Any]
    error: float
    error_upper: float
    absolute: float
    method: str


def check_estimator(code: ErasureCode, estimator: str) -> str:
    """Return the name; raises `InputRefused` for one that there is not, or that the code has not.

    "best": the least predicted error of A x, the default and the only one of codes without a
    transform; "paper": the unbiased one of arXiv 2309.00682; "shrinkage"; "least-squares".
    """
    if estimator not in ESTIMATORS:
        raise InputRefused(f"estimator must be one of {', '.join(ESTIMATORS)}, got {estimator!r}")
    try:
        choose_estimator(code, (), ESTIMATORS[estimator])
    except InvalidCode as exc:
        raise InputRefused(f"estimator {estimator!r}: {exc}; leave it at best") from exc
    return estimator


def estimate(
    code: ErasureCode, answers: AnswerSet[Any], workers: Sequence[int], estimator: str = "best"
) -> ProductEstimate:
    """Estimate A x from the answers of `workers` (at least one), by chunks of columns.

    `estimator`: one of `ESTIMATORS`. "best" never takes least squares for more than
    `MOST_BYTES` of answers or `DENSE_ROWS` of them: no arrival is seen meanwhile. Memory besides
    the answers: the estimate itself and one chunk. Cost: O(N log N) per column; O(s m) for least
    squares.
    """
    wanted = ESTIMATORS[estimator]
    large = len(workers) * answers.form.length * 8 > MOST_BYTES or len(workers) > DENSE_ROWS
    if wanted == "best" and large:
        wanted = _affordable(code, workers)
    form = answers.form
    product = np.empty((form.data_blocks, form.length), form.dtype)
    absolute = error = upper = 0.0
    method = ""
    for first, last in answers.chunks(workers):
        with np.errstate(over="ignore"):  # beyond the dtype: inf, and the exact product may not be
            part = estimate_product(
                code, workers, answers.gather(workers, first, last), method=wanted
            )
            product[:, first:last] = part.value
        absolute = math.hypot(absolute, part.absolute_error)
        error, upper = part.relative_error, part.relative_error_upper  # of the set, not the columns
        method = part.method
    return ProductEstimate(form.layout.assemble(product), error, upper, absolute, method)


def _affordable(code: ErasureCode, workers: Sequence[int]) -> str:
    """Shrinkage in the place of least squares; the others cost next to nothing."""
    return "shrinkage" if choose_estimator(code, workers)[0] == "least-squares" else "best"
