"""The error of the anytime estimator of a polar code from kernels.

With N' positions, S a uniform set of m of them and w_i column i of (G D)^-1 on the data inputs,
T = (N'/m) sum_{i in S} w_i y_i^T is unbiased for any kernels; for K^T K = l I it is the paper's
(1/m) sum z_i y_i^T. For a fixed S it is unbiased over the signs only if all entries of G have the
same size (Hadamard kernels): else input k is scaled by (N'/m) sum_{i in S} w_ik z_ik on average.

Sampling without replacement gives the relative mean squared error c (N'-m) / (m (N'-1)) with
c = N' sum_i ||w_i||^2 ||y_i||^2 / ||X||^2 - 1, and over the signs, for blocks of equal strength,
||y_i||^2 / ||X||^2 = ||z_i||^2 / s. Derived here; for +-1 entries c = s - 1 (arXiv 2309.00682).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.error_bar import chi_square_ratio
from polarcodes.kernels.transform import KernelTransform

_SPECTRAL_ORDER = 16  # up to here the signs take too few values for a quantile to mean anything
_DENSE_ORDER = 256  # up to here M itself is cheap: some milliseconds
_PROBES = 32

Ids = NDArray[np.intp]
Float = NDArray[np.float64]


class EstimatorError:
    """c and what the error bar needs, computed once for each code in O(N' log N')."""

    def __init__(self, transform: KernelTransform, inputs: Ids) -> None:
        self._transform = transform
        self._inputs = inputs
        self.row_energies, columns = transform.squared_norms(inputs)
        order, blocks = transform.order, inputs.size
        self.factor = max(0.0, order * float(columns @ self.row_energies) / blocks - 1.0)
        if self.factor < 1e-9 * blocks:  # one data block of equal answers: rounding
            self.factor = 0.0
        each = order * transform.input_weights(columns, inputs) - 1.0
        self._worst = max(1.0, float(each.max()) / self.factor) if self.factor else 1.0

    def square(self, arrived: int) -> float:
        """Return c (N'-m) / (m (N'-1)); inf at m = 0."""
        order = self._transform.order
        return self.factor * (order - arrived) / (arrived * (order - 1)) if arrived else math.inf

    def inner_square(self, arrived: int) -> float:
        """Return the mean squared error of <X, T> over ||X||^4 for orthogonal kernels.

        <X, T> = (N'/(g m)) sum_{i in S} <z_i, X>^2 with G^T G = g I, and over the signs
        <z_i, X>^4 is 3 (||z_i||^2 / s)^2 ||X||^4 on average: c = 2 for +-1 entries, as for vectors
        at other angles at most.
        """
        order = self._transform.order
        shares = self.row_energies / self._inputs.size * (order / self._transform.energy)
        factor = 3 * float(np.mean(shares**2)) - 1
        return factor * (order - arrived) / (arrived * (order - 1))

    def upper(self, rows: Ids) -> float:
        """Return a bound that ||T - X|| / ||X|| exceeds with probability 5 % at most.

        Over the signs, for the given S: see :func:`polarcodes.error_bar.upper_relative_error`,
        whose derivation applies with B = M^T M. M = T as a matrix, less I, is dense up to
        N' = 256; above, mean and spread come from 32 columns of random signs, and the worst block
        from the mean over S, four standard deviations up.
        """
        if rows.size == 0:
            return math.inf
        blocks, order = self._inputs.size, self._transform.order
        if rows.size == order:
            return 0.0
        if order <= _DENSE_ORDER:
            error = self._error(np.eye(blocks), rows)
            if order <= _SPECTRAL_ORDER:
                return float(np.linalg.norm(error, 2))
            squared = error.T @ error
            diagonal = np.diag(squared)
            mean, worst = float(diagonal.mean()), float(diagonal.max())
            off = float(np.sum(squared**2) - np.sum(diagonal**2))
        else:
            generator = np.random.Generator(np.random.Philox(0))
            probes = generator.integers(0, 2, (blocks, _PROBES)) * 2.0 - 1.0
            squares = np.sum(self._error(probes, rows) ** 2, axis=0)
            mean = float(squares.mean()) / blocks
            off = float(squares.var(ddof=1)) / 2  # the variance over signs is 2 sum_{k != l} B_kl^2
            worst = mean * self._worst * (1 + 4 * math.sqrt(2 / blocks))
        beta_squared = off / blocks**2
        freedom = max(1.0, mean * mean / beta_squared) if beta_squared > 0 else math.inf
        return math.sqrt(max(worst, mean * chi_square_ratio(freedom)))

    def _error(self, columns: NDArray[Any], rows: Ids) -> Float:
        """Return M applied to columns."""
        transform, inputs = self._transform, self._inputs
        answers = np.empty((rows.size, columns.shape[1]))
        out = np.empty_like(columns)
        transform.apply(columns, answers, at=inputs, take=rows)
        transform.solve(answers, out, at=rows, take=inputs, factor=transform.order / rows.size)
        result: Float = out - columns
        return result
