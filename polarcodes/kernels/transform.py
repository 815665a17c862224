"""The transform G D of kernels: G = K_1 (x) ... (x) K_t (x) I_q, applied to blocks in chunks.

Floats go through a few products with small matrices, integers through sums and differences, which
are exact. The matrix G never exists. Kernels stand outermost first, as the index's leading digit;
D is a diagonal of signs on the inputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.errors import InvalidPlan
from polarcodes.plan import Arrays, stored_indices
from polarcodes.signed_transform import SignedTransform
from polarcodes.transform import SINGLE_THREAD

_FACTOR = 16  # as large as neighbouring kernels are multiplied into one matrix

Ids = NDArray[np.intp]
Float = NDArray[np.float64]


class KernelTransform(SignedTransform):
    """G D and its transpose and inverse as operators on the rows of (N', L) arrays.

    Parameters
    ----------
    kernels : matrices, outermost first
    signs : (N',) int8
        The diagonal of D; N' is a multiple of the product of the kernels' sizes, q the quotient.
    """

    def __init__(self, kernels: Sequence[Float], signs: NDArray[np.int8]) -> None:
        self.kernels = tuple(kernels)
        self.signs = signs
        self.sizes = tuple(len(kernel) for kernel in kernels)
        self.order: int = signs.size
        self.leaf = self.order // math.prod(self.sizes)
        self._inverses = tuple(np.linalg.inv(kernel) for kernel in kernels)
        self._products: dict[tuple[str, str], list[NDArray[Any]]] = {}

    @property
    def energy(self) -> int:
        """N' / q: G^T G = N' / q I for orthogonal kernels."""
        return self.order // self.leaf

    @property
    def input_signs(self) -> NDArray[np.int8]:
        """The diagonal of D, shape (N',)."""
        return self.signs

    @property
    def exact(self) -> bool:
        """Whether all kernels are of integers."""
        return all(bool((kernel == np.rint(kernel)).all()) for kernel in self.kernels)

    @property
    def orthogonal(self) -> bool:
        """Whether K^T K = l I for every kernel."""
        return all(
            np.allclose(kernel.T @ kernel, len(kernel) * np.eye(len(kernel)), atol=1e-12)
            for kernel in self.kernels
        )

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return kernels and signs as arrays."""
        return {
            "signs": self.signs,
            "kernel_sizes": np.array(self.sizes, np.intp),
            "kernel_entries": np.concatenate([kernel.ravel() for kernel in self.kernels]),
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> KernelTransform:
        """Rebuild from stored kernels and signs; raises InvalidPlan."""
        signs = np.asarray(arrays["signs"])
        sizes = stored_indices(arrays, "kernel_sizes", None)
        entries = np.asarray(arrays["kernel_entries"])
        if signs.ndim != 1 or not signs.size or not np.isin(signs, (-1, 1)).all():
            raise InvalidPlan("signs must be a list of 1 and -1")
        if not sizes.size or sizes.min() < 2 or signs.size % math.prod(sizes.tolist()):
            raise InvalidPlan(f"kernel_sizes must multiply to a divisor of {signs.size}")
        if entries.shape != (int(np.sum(sizes**2)),) or entries.dtype.kind != "f":
            raise InvalidPlan("kernel_entries must hold the kernels' numbers row by row")
        parts = np.split(entries.astype(np.float64), np.cumsum(sizes**2)[:-1])
        kernels = [part.reshape(size, size) for size, part in zip(sizes, parts, strict=True)]
        if not np.isfinite(entries).all() or any(np.linalg.det(k) == 0 for k in kernels):
            raise InvalidPlan("kernel_entries must make invertible kernels of finite numbers")
        return cls(kernels, signs.astype(np.int8))

    def solve(
        self, source: NDArray[Any], out: NDArray[Any], *, at: Ids, take: Ids, factor: float = 1.0
    ) -> None:
        """Write rows ``take`` of factor (G D)^-1 applied to float ``source`` at rows ``at``."""
        self._leave(self.inverse, source, out, at, take, factor)

    def forward(self, values: NDArray[Any], spare: NDArray[Any]) -> NDArray[Any]:
        """Apply G to the rows of a contiguous float array; both arrays are overwritten.

        The one that holds the result is returned.
        """
        return self._multiply("forward", values, spare)

    def backward(self, values: NDArray[Any], spare: NDArray[Any]) -> NDArray[Any]:
        """Apply G^T likewise."""
        return self._multiply("backward", values, spare)

    def inverse(self, values: NDArray[Any], spare: NDArray[Any]) -> NDArray[Any]:
        """Apply G^-1 likewise."""
        return self._multiply("inverse", values, spare)

    def squared_norms(self, inputs: Ids) -> tuple[Float, Float]:
        """Return ||z_i||^2 and ||w_i||^2 over the data inputs, both of shape (N',).

        z_i is row i of G D and w_i column i of (G D)^-1.
        """
        indicator = np.zeros((self.order, 1))
        indicator[inputs] = 1.0
        rows = _kronecker([kernel**2 for kernel in self.kernels], indicator)
        columns = _kronecker([inverse.T**2 for inverse in self._inverses], indicator)
        return rows[:, 0], columns[:, 0]

    def input_weights(self, weights: Float, inputs: Ids) -> Float:
        """Return sum_i weights[i] G_ik^2 for each data input k."""
        sums = _kronecker([kernel.T**2 for kernel in self.kernels], weights[:, None])
        chosen: Float = sums[inputs, 0]
        return chosen

    def row_weight(self, inputs: Ids) -> float:
        """Return the largest sum of |coefficients| over a row of G, data inputs only."""
        indicator = np.zeros((self.order, 1))
        indicator[inputs] = 1.0
        return float(_kronecker([np.abs(kernel) for kernel in self.kernels], indicator).max())

    def _multiply(self, which: str, values: NDArray[Any], spare: NDArray[Any]) -> NDArray[Any]:
        outer = 1
        for matrix in self._factors(which, values.dtype.name):
            _product(matrix, values, spare, outer)
            values, spare = spare, values
            outer *= len(matrix)
        return values

    def _factors(self, which: str, dtype: str) -> list[NDArray[Any]]:
        """Return the matrices of one direction, neighbours multiplied out up to order 16."""
        if (which, dtype) not in self._products:
            source: Sequence[NDArray[Any]] = self._inverses if which == "inverse" else self.kernels
            groups: list[list[NDArray[Any]]] = [[]]
            for kernel in source:
                if math.prod(len(other) for other in groups[-1]) * len(kernel) > _FACTOR:
                    groups.append([])
                groups[-1].append(kernel.T if which == "backward" else kernel)
            self._products[which, dtype] = [_multiplied(group, dtype) for group in groups if group]
        return self._products[which, dtype]

    def exact_forward(self, values: NDArray[Any], spare: NDArray[Any]) -> NDArray[Any]:
        """Apply G to integers by sums and differences."""
        outer, columns = 1, values.shape[1]
        for kernel in self.kernels:
            shape = (outer, len(kernel), self.order // (outer * len(kernel)) * columns)
            terms, sums = values.reshape(shape), spare.reshape(shape)
            for r, row in enumerate(kernel.astype(np.int64).tolist()):
                sums[:, r] = 0
                for c, coefficient in enumerate(row):
                    _add(sums[:, r], terms[:, c], coefficient)
            values, spare = spare, values
            outer *= len(kernel)
        return values


def _multiplied(group: Sequence[NDArray[Any]], dtype: str) -> NDArray[Any]:
    whole: NDArray[Any] = np.ones((1, 1))
    for matrix in group:
        whole = np.kron(whole, matrix)
    return np.ascontiguousarray(whole, dtype)


def _add(total: NDArray[Any], term: NDArray[Any], coefficient: int) -> None:
    if coefficient == 1:
        total += term
    elif coefficient == -1:
        total -= term
    elif coefficient:
        total += term * total.dtype.type(coefficient)


def _product(matrix: NDArray[Any], values: NDArray[Any], out: NDArray[Any], outer: int) -> None:
    """Write (I_outer (x) matrix (x) I) values to ``out``, in pieces that BLAS does not share."""
    order, columns = values.shape
    size = len(matrix)
    inner = order // (outer * size)
    most = max(1, SINGLE_THREAD // (size * size * columns))  # inner positions of one product
    pieces = next(p for p in range(1, inner + 1) if inner % p == 0 and inner // p <= most)
    shape = (outer, size, pieces, inner // pieces * columns)
    np.matmul(matrix, values.reshape(shape).swapaxes(1, 2), out=out.reshape(shape).swapaxes(1, 2))


def _kronecker(matrices: Sequence[NDArray[Any]], values: Float) -> Float:
    outer, values, spare = 1, values.copy(), np.empty_like(values)
    for matrix in matrices:
        _product(np.ascontiguousarray(matrix), values, spare, outer)
        values, spare = spare, values
        outer *= len(matrix)
    return values
