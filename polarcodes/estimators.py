"""Estimators of the product from any answers, each with its bias, its error and its bar.

Relative errors of the vector metric are ||value - X|| / ||X||, X the s x L product; those of the
inner metric are |<c, value - X>| / (||c|| ||X||) for vectors c fixed beforehand, whatever their
angle with X (for c at right angles to X the errors are smaller). v is the relative mean squared
error of T and r = rank(Z_S), m where the code is random.

=============  ==================================  ==================  ==========================
method         value                               bias                squared error, vector
=============  ==================================  ==================  ==========================
sketch         T = (1/m) sum z_i y_i^T             none                v
shrinkage      T / (1 + v)                         E = X / (1 + v)     v / (1 + v)
least-squares  least norm among what explains Y    E = X r / s         1 - r / s
hybrid         settled blocks, T for the s' others  none                v' s' / s
=============  ==================================  ==================  ==========================

T is that of Bartan and Pilanci (arXiv 2309.00682); the others, and all errors, are derived here.
The hybrid (:mod:`polarcodes.hybrid`) is for polar codes: settled is what the sequential decoder
reaches from S, v' is v of s' blocks.
Least squares never has the larger vector error: v / (1 + v) >= 1 - m / s as soon as m <= s. It
keeps, exactly, every block that S already determines (:func:`fixed_blocks`), which is what a
sequential decoder stopped half way would report. For inner products T's lack of bias often wins.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarcodes.checks import worker_indices
from polarcodes.code import ErasureCode
from polarcodes.errors import InvalidAnswers, InvalidCode
from polarcodes.estimate import Estimate
from polarcodes.estimator_errors import (
    SampledCode,
    errors_of_count,
    errors_of_set,
    nullity,
    transformed,
    upper_error,
)
from polarcodes.hybrid import hybrid_value
from polarcodes.least_squares import minimum_norm
from polarcodes.operator import GeneratorRows
from polarcodes.sequential_code import SequentialCode

METHODS = ("best", "sketch", "shrinkage", "least-squares", "hybrid")
METRICS = ("vector", "inner")

Ids = NDArray[np.intp]


def estimate_product(
    code: ErasureCode,
    S: Iterable[int],
    Y: Any,
    *,
    method: str = "best",
    metric: str = "vector",
) -> Estimate:
    """Estimate the product from the answers Y (m, L) of S.

    Parameters
    ----------
    method : str
        One of :data:`METHODS`; ``best`` takes the one with the least predicted error for the
        metric. Codes without a transform have one estimator, which ``best`` takes.
    metric : str
        What the errors of the result mean, and ``best`` minimises: ``vector`` or ``inner``.

    Notes
    -----
    Cost for each column: one transform for sketch and shrinkage, two per step of conjugate
    gradients for least squares (some tens of steps), whose rank costs O(min(e, f)^2 max(e, f)).
    """
    workers = worker_indices(S, code.workers)
    chosen, error = choose_estimator(code, workers, method, metric=metric)
    sketch = code.estimate(workers, Y)
    if chosen == "decoder" and transformed(code):
        return _decoded(code, workers, Y, sketch)
    if not transformed(code) or workers.size in (0, code.workers):
        return sketch
    norm = sketch.absolute_error / sketch.relative_error if sketch.relative_error else 0.0
    upper = 2.0 * error if metric == "inner" else upper_error(chosen, code, workers, sketch)
    value = sketch.value
    if chosen == "shrinkage":
        value = value / value.dtype.type(1 + sketch.relative_error**2)
    elif chosen != "sketch":
        _, answers = code._checked(workers, Y)
        if chosen == "hybrid" and isinstance(code, SequentialCode):
            value = hybrid_value(code, workers, answers)
        else:
            value = minimum_norm(GeneratorRows(code, workers), answers)
    return Estimate(
        value=value,
        relative_error=error,
        relative_error_upper=max(upper, error),
        absolute_error=error * norm,
        method=chosen,
    )


def choose_estimator(
    code: ErasureCode, S: Iterable[int], method: str = "best", *, metric: str = "vector"
) -> tuple[str, float]:
    """Return the name and the predicted error of what :func:`estimate_product` does with S.

    The name is a method, ``decoder`` where the answers of S determine the product already, or
    ``own`` for a code with one estimator. Raises InvalidCode as :func:`estimate_product` does.
    """
    if method not in METHODS or metric not in METRICS:
        raise InvalidCode(
            f"method must be one of {', '.join(METHODS)} and metric one of {', '.join(METRICS)}, "
            f"got {method!r} and {metric!r}"
        )
    workers = worker_indices(S, code.workers)
    if not transformed(code):
        if method != "best" or metric != "vector":
            raise InvalidCode(f"the code {code.name!r} has one estimator, for the vector metric")
        return "own", code.predicted_error(workers.size)
    if method == "hybrid" and not isinstance(code, SequentialCode):
        raise InvalidCode(
            f"the code {code.name!r} has no sequential decoder for a {method} estimate"
        )
    if workers.size in (0, code.workers):
        return "sketch", code.predicted_error(workers.size)
    if method in ("best", "least-squares", "hybrid"):
        if nullity(code, workers) == 0 and code.decodable(workers):
            return "decoder", code.plan(workers).predicted_error()
        errors = errors_of_set(code, workers, metric)
    else:  # counting the rank is costly, and of no use to the others
        errors = errors_of_count(code, workers.size, metric)
    chosen = min(errors, key=lambda name: errors[name]) if method == "best" else method
    return chosen, errors[chosen]


def estimator_errors(
    code: ErasureCode, S: Iterable[int], *, metric: str = "vector"
) -> dict[str, float]:
    """Return the predicted error of every estimator of a code with a transform, by its name."""
    workers = worker_indices(S, code.workers)
    if not transformed(code):
        raise InvalidCode(f"the code {code.name!r} has one estimator, for the vector metric")
    return errors_of_set(code, workers, metric)


def expected_error(
    code: ErasureCode, m: int, method: str = "best", *, metric: str = "vector"
) -> float:
    """Return the relative rms error that m answers can be expected to give with ``method``.

    Takes them to be as independent as random ones, so least squares loses s - m of s blocks, one
    at least; :func:`choose_estimator` counts them for a given set.
    """
    if not transformed(code) or m in (0, code.workers):
        return code.predicted_error(m)
    errors = errors_of_count(code, m, metric)
    return min(errors.values()) if method == "best" else errors[method]


def from_reference(change: Estimate, reference: ArrayLike) -> Estimate:
    """Return the estimate of A x from one of A (x - x_ref), given ``reference`` = A x_ref exact.

    The absolute error is that of the change and shrinks with the step: for iterations. The
    reference must be exact (decoded): differences of estimates pile their errors up. Relative
    errors are over the norm of the new value. ``reference`` has the shape of ``change.value``.
    """
    exact = np.asarray(reference)
    if exact.shape != change.value.shape:
        raise InvalidAnswers(
            f"reference must have the shape {change.value.shape} of the estimate, got {exact.shape}"
        )
    value = change.value + exact.astype(change.value.dtype)
    size = float(np.linalg.norm(value))
    if not math.isfinite(change.absolute_error) or size == 0.0:
        return replace(change, value=value, method=f"{change.method} from reference")
    relative = change.absolute_error / size
    growth = 1.0
    if change.relative_error > 0:
        growth = change.relative_error_upper / change.relative_error
    return replace(
        change,
        value=value,
        relative_error=relative,
        relative_error_upper=relative * growth,
        method=f"{change.method} from reference",
    )


def fixed_blocks(code: ErasureCode, S: Iterable[int]) -> NDArray[np.bool_]:
    """Return which data blocks the answers of S determine already, shape (s,).

    Block k is determined if and only if the unit vector e_k lies in the row space of Z_S. Dense:
    O(m s min(m, s)).
    """
    rows = code.rows(S)
    if rows.shape[0] == 0:
        return np.zeros(code.data_blocks, bool)
    _, sizes, right = np.linalg.svd(rows, full_matrices=False)
    space = right[sizes > 1e-9 * sizes[0]]
    return np.asarray(np.sum(space**2, axis=0) > 1 - 1e-9)


def _decoded(code: SampledCode, workers: Ids, Y: Any, sketch: Estimate) -> Estimate:
    """Return the exact product: what least squares is from rank s on."""
    plan = code.plan(workers)
    error = plan.predicted_error()
    norm = sketch.absolute_error / sketch.relative_error if sketch.relative_error else 0.0
    return Estimate(plan.apply(Y), error, 10.0 * error, error * norm, plan.method)
