"""What an estimate consists of, and the estimators of codes that need no answer in particular."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Estimate:
    """An estimate of the product from the answers of some workers.

    Attributes
    ----------
    value : (s, L) array
        The estimate of the data blocks' answers.
    relative_error : float
        Predicted rms of ||value - X|| / ||X||; 0 when nothing is missing, inf without answers.
    relative_error_upper : float
        The relative error stays below this with probability 95 % at least.
    absolute_error : float
        Predicted rms of ||value - X||, from the answers alone.
    method : str
        Which estimator this is.
    """

    value: NDArray[Any]
    relative_error: float
    relative_error_upper: float
    absolute_error: float
    method: str


def mean_square(answers: NDArray[Any]) -> float:
    """Return the mean over workers of ||y_i||^2, summed in float64; 0 without answers.

    For a code with +-1 coefficients its expectation is ||X||^2 (arXiv 2309.00682).
    """
    if answers.shape[0] == 0:
        return 0.0
    total = 0.0
    for row in answers:
        norm = float(np.linalg.norm(row))
        total += norm * norm
    return total / int(answers.shape[0])
