"""The estimate of the product from the answers that are here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coordinator.answers import Answers
from coordinator.inputs import InputRefused
from polarcodes import ErasureCode, InvalidCode, estimate_product
from polarcodes.estimators import METRICS, choose_estimator, estimator_errors
from polarcodes.least_squares import DENSE_ROWS

__all__ = ["ESTIMATORS", "METRICS", "ProductEstimate", "check_estimator", "estimate"]

ESTIMATORS = {
    "best": "best",
    "paper": "sketch",
    "shrinkage": "shrinkage",
    "least-squares": "least-squares",
}
"""What people ask for, and its name in polarcodes.estimators."""

COSTLY = ("least-squares",)
MOST_BYTES = 16 << 20  # of float64 answers, so that least squares takes a second at most


@dataclass(frozen=True)
class ProductEstimate:
    """value: (n,) or (n, k), in the dtype of the answers; error and error_upper: predicted relative
    error in the metric asked for, rms and 95 % bound; absolute: predicted rms of ||value - A x||,
    or of inner products with vectors of norm 1."""

    value: NDArray[Any]
    error: float
    error_upper: float
    absolute: float
    method: str


def check_estimator(code: ErasureCode, estimator: str, metric: str = "vector") -> str:
    """Return the name; raises `InputRefused` for one that there is not, or that the code has not.

    metric: "vector", errors of A x relative to its norm; "inner", errors of c^T A x for vectors c
    chosen beforehand, relative to ||c|| ||A x||.

    "best": the least predicted error of A x, the default and the only one of codes without a
    transform; "paper": the unbiased one of arXiv 2309.00682; "shrinkage"; "least-squares".
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


def estimate(
    code: ErasureCode,
    answers: Answers,
    workers: Sequence[int],
    estimator: str = "best",
    metric: str = "vector",
) -> ProductEstimate:
    """Estimate A x from the answers of `workers` (at least one), by chunks of columns.

    `estimator`: one of `ESTIMATORS`. "best" never takes least squares for more than
    `MOST_BYTES` of answers or `DENSE_ROWS` of them: no arrival is seen meanwhile. Memory besides
    the answers: the estimate itself and one chunk. Cost: O(N log N) per column; O(s m) for least
    squares.
    """
    wanted = ESTIMATORS[estimator]
    large = len(workers) * answers.length * 8 > MOST_BYTES or len(workers) > DENSE_ROWS
    if wanted == "best" and large:
        wanted = _affordable(code, workers, metric)
    product = answers.empty_product()
    absolute = error = upper = 0.0
    method = ""
    for first, last in answers.chunks(workers):
        with np.errstate(over="ignore"):  # beyond the dtype: inf, and the exact product may not be
            part = estimate_product(
                code,
                workers,
                answers.gather(workers, first, last),
                method=wanted,
                metric=metric,
            )
            product[:, first:last] = part.value
        absolute = math.hypot(absolute, part.absolute_error)
        error, upper = part.relative_error, part.relative_error_upper  # of the set, not the columns
        method = part.method
    return ProductEstimate(answers.trim(product), error, upper, absolute, method)


def _affordable(code: ErasureCode, workers: Sequence[int], metric: str) -> str:
    """The best without least squares, which alone costs more than one transform a column."""
    if choose_estimator(code, workers, metric=metric)[0] not in COSTLY:
        return "best"
    errors = estimator_errors(code, workers, metric=metric)
    return min((name for name in errors if name not in COSTLY), key=lambda name: errors[name])
