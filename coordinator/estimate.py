"""The estimate of the product from the answers that are here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coordinator.answers import Answers
from polarcodes import ErasureCode

__all__ = ["ProductEstimate", "estimate"]


@dataclass(frozen=True)
class ProductEstimate:
    """value: (n,) or (n, k), in the dtype of the answers; error and error_upper: predicted relative
    error, rms and 95 % bound; absolute: predicted rms of ||value - A x||."""

    value: NDArray[Any]
    error: float
    error_upper: float
    absolute: float
    method: str


def estimate(code: ErasureCode, answers: Answers, workers: Sequence[int]) -> ProductEstimate:
    """Estimate A x from the answers of `workers` (at least one), by chunks of columns.

    Memory besides the answers: the estimate itself and one chunk. Cost: O(N log N) per column.
    """
    product = answers.empty_product()
    absolute = error = upper = 0.0
    method = ""
    for first, last in answers.chunks(workers):
        with np.errstate(over="ignore"):  # beyond the dtype: inf, and the exact product may not be
            part = code.estimate(workers, answers.gather(workers, first, last))
            product[:, first:last] = part.value
        absolute = math.hypot(absolute, part.absolute_error)
        error, upper = part.relative_error, part.relative_error_upper  # of the set, not the columns
        method = part.method
    return ProductEstimate(answers.trim(product), error, upper, absolute, method)
