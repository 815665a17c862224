"""What the estimators of :mod:`polarcodes.estimators` can be expected to miss the product by."""

from __future__ import annotations

import math
from typing import TypeGuard

import numpy as np
from numpy.typing import NDArray

from polarcodes.code import ErasureCode
from polarcodes.errors import InvalidCode
from polarcodes.estimate import Estimate
from polarcodes.grid import GridCode
from polarcodes.hadamard import HadamardCode
from polarcodes.hybrid import hybrid_error, hybrid_upper
from polarcodes.kernels.code import KernelPolarCode
from polarcodes.sequential_code import SequentialCode
from polarcodes.transform_code import TransformCode

Ids = NDArray[np.intp]
SampledCode = TransformCode | GridCode
"""Codes whose answers are samples of an orthogonal transform of the product."""


def transformed(code: ErasureCode) -> TypeGuard[SampledCode]:
    """Return whether the code has several estimators: a parity check, or a grid of such codes."""
    if isinstance(code, GridCode):
        return code.sampling is not None
    return isinstance(code, TransformCode) and code._syndrome is not None


def nullity(code: SampledCode, workers: Ids) -> int:
    """Return s - rank(Z_S), for a code that :func:`transformed` accepts."""
    if isinstance(code, GridCode):
        return code.nullity(workers)
    if code._syndrome is None:
        raise InvalidCode(f"{code!r} has no parity check to count with")
    return code._syndrome.nullity(workers)


def errors_of_set(code: SampledCode, workers: Ids, metric: str) -> dict[str, float]:
    """Return the relative rms error of every estimator that has one, from these answers.

    The hybrid is there for polar codes; nothing being settled it is T, which stands first.
    """
    errors = _errors(code, workers.size, _lost(code, workers), metric)
    if isinstance(code, SequentialCode):
        errors["hybrid"] = hybrid_error(code, workers, metric)
    return errors


def errors_of_count(code: SampledCode, arrived: int, metric: str) -> dict[str, float]:
    """Return what m answers can be expected to give, taken to be as independent as random ones.

    Least squares then loses s - m of s blocks, one at least. For the hybrid nothing counts as
    settled, which is more than it will miss by.
    """
    lost = max(code.data_blocks - arrived, 1) / code.data_blocks
    errors = _errors(code, arrived, lost, metric)
    if isinstance(code, SequentialCode):
        errors["hybrid"] = errors["sketch"]
    return errors


def upper_error(method: str, code: SampledCode, workers: Ids, sketch: Estimate) -> float:
    """Return the 95 % bound of the vector error, for any product.

    Shrinkage: ||M X - v X||^2 / (1 + v)^2 with ||M X|| below T's own bound and <M X, X> below two
    standard deviations sqrt(2 v / (s - 1)); for a grid, which has fewer signs, (||M X|| + v) / (1 +
    v). Least squares with random slots: a projection of X on a random space of dimension s - r,
    four standard deviations for the worst block. With chosen slots (polar, or grids) what is lost
    may sit in few blocks: the projection's own bound, 1.
    """
    if method == "sketch":
        return sketch.relative_error_upper
    if method == "shrinkage" and isinstance(code, GridCode):
        v = sketch.relative_error**2
        return (sketch.relative_error_upper + v) / (1 + v)
    if method == "shrinkage":
        v = sketch.relative_error**2
        overlap = 2 * math.sqrt(2 * v / max(code.data_blocks - 1, 1))
        square = sketch.relative_error_upper**2 + 2 * v * overlap + v * v
        return math.sqrt(square) / (1 + v)
    if method == "hybrid" and isinstance(code, SequentialCode):
        return hybrid_upper(code, workers)
    lost = _lost(code, workers)
    if not isinstance(code, HadamardCode):
        return 1.0 if lost else 0.0
    spread = math.sqrt(2 * lost * (1 - lost) / code.data_blocks)
    return math.sqrt(min(1.0, lost + 4 * spread))


def _errors(code: SampledCode, arrived: int, lost: float, metric: str) -> dict[str, float]:
    v = code.predicted_error(arrived) ** 2
    return {
        "sketch": _sketch_error(code, arrived, metric),
        "shrinkage": _shrunk_error(v, code, arrived, metric),
        "least-squares": _projected_error(lost, code.data_blocks, metric),
    }


def _lost(code: SampledCode, workers: Ids) -> float:
    """Return 1 - rank(Z_S) / s; one block where the rank is full, but too weak to count on."""
    return max(nullity(code, workers), 1) / code.data_blocks


def _sketch_error(code: SampledCode, arrived: int, metric: str) -> float:
    """Return sqrt(v), or for inner products the factor sqrt(2 v / (s - 1)): the worst angle."""
    if metric == "vector":
        return code.predicted_error(arrived)
    if isinstance(code, GridCode):
        raise InvalidCode(
            "a grid of two codes has no bar for inner products: take the vector metric"
        )
    if isinstance(code, KernelPolarCode):
        return math.sqrt(code._error.inner_square(arrived))
    order = code._transform.order
    return math.sqrt(2 * (order - arrived) / (arrived * (order - 1)))


def _shrunk_error(v: float, code: SampledCode, arrived: int, metric: str) -> float:
    """Return sqrt(v / (1 + v)); for inner products bias v / (1 + v) and T's scatter, shrunk."""
    if metric == "vector":
        return math.sqrt(v / (1 + v))
    return math.hypot(v, _sketch_error(code, arrived, metric)) / (1 + v)


def _projected_error(lost: float, blocks: int, metric: str) -> float:
    """Return sqrt(1 - r/s); for inner products bias 1 - r/s and the scatter of a projection."""
    if metric == "vector":
        return math.sqrt(lost)
    return math.sqrt(lost**2 + 2 * lost * (1 - lost) / blocks)
