"""Schedules found."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polarcodes.circulant import uc_mmc_coefficients


def searched_coefficients(
    workers: int, load: int, *, tolerance: float = 0.0
) -> NDArray[np.float64]:
    """Return."""
    return uc_mmc_coefficients(workers, load)
