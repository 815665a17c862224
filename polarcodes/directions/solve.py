"""Gradients from more or fewer noisy derivatives than parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["GradientEstimate", "least_squares", "ridge"]

_FLOOR = 1e-10  # of singular values over the largest: a direction the answers do not determine
_WEIGHTS = np.concatenate([[1e-20], np.logspace(-14, 4, 73)])
_AS_LIKELY = 6.63  # the 99 % point of chi-square with one degree of freedom
_NEGLIGIBLE = 1e-4  # shrinking of the least determined component that counts as none


@dataclass(frozen=True)
class GradientEstimate:
    """A gradient from the directional derivatives that arrived.

    value : (p,) float64; exact : the derivatives determine every component, so that what is left
    is O(sigma^2) and the noise of f; relative_error : predicted rms of ||value - g|| / ||g||
    because of what has not come, noise comes on top: 0 where exact, inf without answers; method :
    how it was found.
    """

    value: NDArray[np.float64]
    exact: bool
    relative_error: float
    method: str


def least_squares(rows: NDArray[np.float64], slopes: NDArray[np.float64]) -> GradientEstimate:
    """The least-squares solution of rows g = slopes; of least norm where several solve it.

    Relative error before full rank r < p: sqrt(1 - r / p), averaged over equally strong components.
    Noise is multiplied by the inverse singular values, which are small when hardly more equations
    than parameters have come. Cost: m p min(m, p).
    """
    value, _, rank, _ = np.linalg.lstsq(rows, slopes, rcond=_FLOOR)
    parameters = rows.shape[1]
    exact = int(rank) == parameters
    error = 0.0 if exact else math.sqrt(1 - int(rank) / parameters)
    method = "least-squares" if exact else "projection"
    return GradientEstimate(np.asarray(value, dtype=np.float64), exact, error, method)


def ridge(rows: NDArray[np.float64], slopes: NDArray[np.float64]) -> GradientEstimate:
    """Least squares that trusts each combination of equations as far as its noise allows.

    With g normal of variance gamma^2 a component and noise of variance tau^2 on each slope, the
    posterior mean is V diag(d / (d^2 + w)) U^T y with w = tau^2 / gamma^2, and its relative mean
    squared error the mean of w / (d^2 + w). w is the least that the slopes do not speak against: a
    likelihood ratio test at 1 % against the w under which they are most likely (evidence; MacKay,
    Neural Computation 4, 1992). Without noise it is nothing, and this is least squares. Never a
    direction of ascent where the slopes have no noise. Cost: m p min(m, p).
    """
    U, d, Vt = np.linalg.svd(rows, full_matrices=False)
    parts = U.T @ slopes
    left = max(0.0, float(slopes @ slopes - parts @ parts))
    if left <= 1e-24 * float(slopes @ slopes):  # rounding, not noise
        left = 0.0
    squares = d * d
    weight = _least_weight(squares, parts, left, slopes.size)
    value = Vt.T @ (parts * d / (squares + weight))
    parameters = rows.shape[1]
    shrunk = np.ones(parameters)
    shrunk[: d.size] = weight / (squares + weight)
    exact = bool(d.size == parameters and shrunk.max() < _NEGLIGIBLE)
    error = 0.0 if exact else math.sqrt(float(shrunk.mean()))
    return GradientEstimate(value, exact, error, "least-squares" if exact else "ridge")


def _least_weight(
    squares: NDArray[np.float64], parts: NDArray[np.float64], left: float, count: int
) -> float:
    """The least weight w that is about as likely as the likeliest, gamma^2 fitted to each w.

    parts : the slopes along the left singular vectors; left : the squared norm of the rest.
    """
    if not (parts.any() or left):
        return 0.0
    weights = _WEIGHTS * float(squares.max())
    variances = squares[None, :] + weights[:, None]
    rest = count - squares.size
    scale = (parts**2 / variances).sum(axis=1) + (left / weights if rest else 0.0)
    likelihood = -count * np.log(scale) - np.log(variances).sum(axis=1) - rest * np.log(weights)
    return float(weights[int(np.argmax(likelihood >= likelihood.max() - _AS_LIKELY))])
