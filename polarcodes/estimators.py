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
=============  ==================================  ==================  ==========================

T is that of Bartan and Pilanci (arXiv 2309.00682); the others, and all errors, are derived here.
Least squares never has the larger vector error: v / (1 + v) >= 1 - m / s as soon as m <= s. It
keeps, exactly, every block that S already determines (:func:`fixed_blocks`), which is what a
sequential decoder stopped half way would report. For inner products T's lack of bias often wins.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarcodes.checks import worker_indices
from polarcodes.code import ErasureCode
from polarcodes.errors import InvalidAnswers, InvalidCode
from polarcodes.estimate import Estimate
from polarcodes.hadamard import HadamardCode
from polarcodes.kernels.code import KernelPolarCode
from polarcodes.least_squares import minimum_norm
from polarcodes.operator import GeneratorRows
from polarcodes.polar import PolarCode

METHODS = ("best", "sketch", "shrinkage", "least-squares")
METRICS = ("vector", "inner")

Ids = NDArray[np.intp]
TransformCode = PolarCode | HadamardCode | KernelPolarCode


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
    if chosen == "decoder" and _transformed(code):
        return _decoded(code, workers, Y, sketch)
    if not _transformed(code) or workers.size in (0, code.workers):
        return sketch
    lost = _lost(code, workers) if chosen == "least-squares" else 0.0  # costly, and no other's
    norm = sketch.absolute_error / sketch.relative_error if sketch.relative_error else 0.0
    if metric == "inner":
        upper = 2.0 * error
    else:
        upper = _upper(chosen, code, sketch, lost)
    value = sketch.value
    if chosen == "shrinkage":
        value = value / value.dtype.type(1 + sketch.relative_error**2)
    if chosen == "least-squares":
        _, answers = code._checked(workers, Y)
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
    if not _transformed(code):
        if method != "best" or metric != "vector":
            raise InvalidCode(f"the code {code.name!r} has one estimator, for the vector metric")
        return "own", code.predicted_error(workers.size)
    if workers.size in (0, code.workers):
        return "sketch", code.predicted_error(workers.size)
    wanted = method in ("best", "least-squares")
    if wanted and _nullity(code, workers) == 0 and code.decodable(workers):
        return "decoder", code.plan(workers).predicted_error()
    lost = _lost(code, workers) if wanted else 1.0
    errors = _errors(code, workers.size, lost, metric)
    chosen = min(errors, key=lambda name: errors[name]) if method == "best" else method
    return chosen, errors[chosen]


def estimator_errors(
    code: ErasureCode, S: Iterable[int], *, metric: str = "vector"
) -> dict[str, float]:
    """Return the predicted error of every estimator of a code with a transform, by its name."""
    workers = worker_indices(S, code.workers)
    if not _transformed(code):
        raise InvalidCode(f"the code {code.name!r} has one estimator, for the vector metric")
    return _errors(code, workers.size, _lost(code, workers), metric)


def expected_error(
    code: ErasureCode, m: int, method: str = "best", *, metric: str = "vector"
) -> float:
    """Return the relative rms error that m answers can be expected to give with ``method``.

    Takes them to be as independent as random ones, so least squares loses s - m of s blocks, one
    at least; :func:`choose_estimator` counts them for a given set.
    """
    if not _transformed(code) or m in (0, code.workers):
        return code.predicted_error(m)
    errors = _errors(code, m, max(code.data_blocks - m, 1) / code.data_blocks, metric)
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


def _decoded(code: TransformCode, workers: Ids, Y: Any, sketch: Estimate) -> Estimate:
    """Return the exact product: what least squares is from rank s on."""
    plan = code.plan(workers)
    error = plan.predicted_error()
    norm = sketch.absolute_error / sketch.relative_error if sketch.relative_error else 0.0
    return Estimate(plan.apply(Y), error, 10.0 * error, error * norm, plan.method)


def _errors(code: TransformCode, arrived: int, lost: float, metric: str) -> dict[str, float]:
    v = code.predicted_error(arrived) ** 2
    return {
        "sketch": _sketch_error(code, arrived, metric),
        "shrinkage": _shrunk_error(v, code, arrived, metric),
        "least-squares": _projected_error(lost, code.data_blocks, metric),
    }


def _lost(code: TransformCode, workers: Ids) -> float:
    """Return 1 - rank(Z_S) / s; one block where the rank is full, but too weak to count on."""
    return max(_nullity(code, workers), 1) / code.data_blocks


def _nullity(code: TransformCode, workers: Ids) -> int:
    """Return s - rank(Z_S), for a code that `_transformed` accepts."""
    if code._syndrome is None:
        raise InvalidCode(f"{code!r} has no parity check to count with")
    return code._syndrome.nullity(workers)


def _transformed(code: ErasureCode) -> TypeGuard[TransformCode]:
    """Whether the code has more than one estimator: an orthogonal transform, so a parity check."""
    return isinstance(code, TransformCode) and code._syndrome is not None


def _sketch_error(code: TransformCode, arrived: int, metric: str) -> float:
    """Return sqrt(v), or for inner products the factor sqrt(2 v / (s - 1)): the worst angle."""
    if metric == "vector":
        return code.predicted_error(arrived)
    if isinstance(code, KernelPolarCode):
        return math.sqrt(code._error.inner_square(arrived))
    order = code.rounds.order if isinstance(code, HadamardCode) else code.workers
    return math.sqrt(2 * (order - arrived) / (arrived * (order - 1)))


def _shrunk_error(v: float, code: TransformCode, arrived: int, metric: str) -> float:
    """Return sqrt(v / (1 + v)); for inner products bias v / (1 + v) and T's scatter, shrunk."""
    if metric == "vector":
        return math.sqrt(v / (1 + v))
    return math.hypot(v, _sketch_error(code, arrived, metric)) / (1 + v)


def _projected_error(lost: float, blocks: int, metric: str) -> float:
    """Return sqrt(1 - r/s); for inner products bias 1 - r/s and the scatter of a projection."""
    if metric == "vector":
        return math.sqrt(lost)
    return math.sqrt(lost**2 + 2 * lost * (1 - lost) / blocks)


def _upper(method: str, code: TransformCode, sketch: Estimate, lost: float) -> float:
    """Return the 95 % bound of the vector error, for any product.

    Shrinkage: ||M X - v X||^2 / (1 + v)^2 with ||M X|| below T's own bound and <M X, X> below two
    standard deviations sqrt(2 v / (s - 1)). Least squares with random slots: a projection of X on
    a random space of dimension s - r, four standard deviations for the worst block. With chosen
    slots (polar) what is lost may sit in few blocks: the projection's own bound, 1.
    """
    if method == "sketch":
        return sketch.relative_error_upper
    if method == "shrinkage":
        v = sketch.relative_error**2
        overlap = 2 * math.sqrt(2 * v / max(code.data_blocks - 1, 1))
        square = sketch.relative_error_upper**2 + 2 * v * overlap + v * v
        return math.sqrt(square) / (1 + v)
    if not isinstance(code, HadamardCode):
        return 1.0 if lost else 0.0
    spread = math.sqrt(2 * lost * (1 - lost) / code.data_blocks)
    return math.sqrt(min(1.0, lost + 4 * spread))
