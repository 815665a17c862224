"""Search directions for functions that can only be evaluated (arXiv 2309.00682, section on
black-box optimization; Choromanski et al., arXiv 1804.02395).

A worker evaluates f at theta + sigma v and theta - sigma v for one direction v. The antithetic
difference y = (f(theta + sigma v) - f(theta - sigma v)) / (2 sigma) is v . grad f(theta) up to
O(sigma^2), so differences along the rows of a code are a codeword of the gradient.

>>> import numpy as np
>>> directions = make_directions("coded", parameters=5, count=8, seed=1)
>>> gradient = np.arange(1.0, 6.0)
>>> arrived = [7, 1, 4, 2, 0]
>>> directions.gradient(arrived, directions.vectors(arrived) @ gradient).value.round(9)
array([1., 2., 3., 4., 5.])
"""

from __future__ import annotations

from polarcodes.directions.base import Directions
from polarcodes.directions.make import (
    DIRECTION_KINDS,
    directions_from_manifest,
    make_directions,
    smallest_count,
)
from polarcodes.directions.solve import GradientEstimate

__all__ = [
    "DIRECTION_KINDS",
    "Directions",
    "GradientEstimate",
    "directions_from_manifest",
    "make_directions",
    "smallest_count",
]
