"""Minimum-norm least squares on the received generator rows, dense or by conjugate gradients.

The estimate is the projection of the product on the row space of Z_S: of all products that explain
the answers the one of least norm. For blocks of equal strength its relative squared error is
1 - rank(Z_S) / s, and it never exceeds one for any product; it is exact once rank(Z_S) = s. It is
biased towards zero before that (multiplied by rank / s on average), while T of arXiv 2309.00682 is
not biased and far off.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.operator import GeneratorRows

DENSE_ROWS = 1024  # up to here m^2 multiplications a column are cheaper than tens of transforms
_FLOOR = 1e-10  # of squared singular values over the largest: weaker directions are left out
_STEPS = 200
_ACCURACY = 1e-7


def minimum_norm(operator: GeneratorRows, answers: NDArray[Any]) -> NDArray[Any]:
    """Return the s x L estimate from answers Y, shape (m, L), float32 or float64.

    Up to 1,024 rows by the eigenvectors of Z Z^T: O(m^3 + s m^2) once and s m multiplications a
    column, some ten times faster there than steps with a transform. Beyond, conjugate gradients on
    Z^T Z x = Z^T y from zero (CGLS), every column with its own step, until the normal equations
    hold to 1e-7 or 200 steps are done. One product with the operator and one with its adjoint a
    step: some tens of steps away from rank s, more near it, where little singular values appear.
    """
    value = np.zeros((operator.shape[1], answers.shape[1]))
    if answers.size == 0:
        return value.astype(answers.dtype)
    if operator.shape[0] <= DENSE_ROWS:
        return _pseudo_inverse(operator.to_dense(), answers)
    residual = answers.astype(np.float64)
    gradient = operator.adjoint(residual)
    direction = gradient.copy()
    size = np.einsum("ij,ij->j", gradient, gradient)
    goal = _ACCURACY**2 * size
    for _ in range(_STEPS):
        moving = size > goal
        if not moving.any():
            break
        image = operator.apply(direction)
        energy = np.einsum("ij,ij->j", image, image)
        step = np.divide(size, energy, out=np.zeros_like(size), where=moving & (energy > 0))
        value += step * direction
        residual -= step * image
        gradient = operator.adjoint(residual)
        before, size = size, np.einsum("ij,ij->j", gradient, gradient)
        direction *= np.divide(size, before, out=np.zeros_like(size), where=before > 0)
        direction += gradient
    return value.astype(answers.dtype)


def _pseudo_inverse(rows: NDArray[np.float64], answers: NDArray[Any]) -> NDArray[Any]:
    squares, vectors = np.linalg.eigh(rows @ rows.T)
    kept = squares > _FLOOR * squares[-1]
    basis = vectors[:, kept]
    inverse = (rows.T @ (basis / squares[kept])) @ basis.T
    return np.asarray(inverse @ answers).astype(answers.dtype)


def projection_error(data_blocks: int, arrived: int, workers: int) -> float:
    """Return sqrt(1 - r/s) for a row space of r = m dimensions, at most s - 1 before m = N.

    inf at m = 0, where nothing is known of the product's size either.
    """
    if arrived in (0, workers):
        return 0.0 if arrived else math.inf
    return math.sqrt(max(data_blocks - arrived, 1) / data_blocks)
