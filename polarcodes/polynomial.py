"""Polynomial codes over the reals: the usual way to code both factors, as a baseline.

Worker i holds A~(x_i) = sum_k p_k(x_i) A_k and B~(x_i) = sum_l q_l(x_i) B_l. Their product is a
polynomial of degree s1 s2 - 1 in x_i whose coefficients give all A_k B_l, so any s1 s2 answers
determine it: no set of workers is better than another, and none is cheaper to decode. What it costs
over the reals is the condition number of a Vandermonde matrix.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.checks import integer
from polarcodes.dense import DenseCode
from polarcodes.errors import InvalidCode
from polarcodes.manifest import Fields

BASES = ("chebyshev", "monomial")


class PolynomialCode(DenseCode):
    """Row i is p(x_i) (x) q(x_i): s1 s2 data blocks A_k B_l, index k s2 + l, at N Chebyshev nodes.

    ``monomial``: p_k = x^(k s2), q_l = x^l, the code as it was published for finite fields; any
    gap in the answers costs digits exponentially in s. ``chebyshev``: p_k = T_(k s2) and q_l = T_l,
    whose products span the same polynomials; far better, and still exponential in the length of a
    gap of neighbouring nodes. Both codes need N blocks of A and N of B in storage, N / s1 and N /
    s2 times the matrices, where a grid needs N1 / s1 and N2 / s2.

    Parameters
    ----------
    workers : int
        N >= s1 s2.
    data_grid : (s1, s2)
    basis : str
        ``chebyshev`` (the default) or ``monomial``.

    References
    ----------
    Yu, Maddah-Ali and Avestimehr, "Polynomial Codes: an Optimal Design for High-Dimensional Coded
    Matrix Multiplication", arXiv 1705.10464; Fahim and Cadambe, "Numerically Stable Polynomially
    Coded Computing", arXiv 1903.08326.

    >>> code = PolynomialCode(6, (2, 2))
    >>> A, B = np.array([1.0, 2.0]), np.array([3.0, 5.0])
    >>> first, second = code.factors
    >>> S = [0, 2, 3, 5]
    >>> answers = ((first @ A) * (second @ B))[S, None]
    >>> np.round(code.plan(S).apply(answers).ravel(), 6).tolist()
    [3.0, 5.0, 6.0, 10.0]
    """

    name = "polynomial"

    def __init__(self, workers: int, data_grid: Sequence[int], *, basis: str = "chebyshev") -> None:
        if not isinstance(data_grid, (list, tuple)) or len(data_grid) != 2:
            raise InvalidCode(f"data_grid must be two integers, got {data_grid!r}")
        s1, s2 = (integer("data_grid", size, 1, None) for size in data_grid)
        count = integer("workers", workers, s1 * s2, 1 << 20)
        if basis not in BASES:
            raise InvalidCode(f"basis must be one of {', '.join(BASES)}, got {basis!r}")
        self._check_size(self.name, count, s1 * s2)
        self._data_grid = s1, s2
        self._basis = basis
        nodes = np.cos(math.pi * (np.arange(count) + 0.5) / count)
        self._factors = (
            _powers(nodes, s2 * np.arange(s1), basis),
            _powers(nodes, np.arange(s2), basis),
        )
        first, second = self._factors
        self._assemble(0, (first[:, :, None] * second[:, None, :]).reshape(count, s1 * s2))

    @property
    def data_grid(self) -> tuple[int, int]:
        """(s1, s2)."""
        return self._data_grid

    @property
    def factors(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The coefficients of A's blocks, (N, s1), and of B's, (N, s2)."""
        return self._factors

    def to_manifest(self) -> dict[str, Any]:
        """Return the code as pure JSON; its matrix is a function of these numbers."""
        return {
            "name": self.name,
            "version": 1,
            "workers": self.workers,
            "data_blocks": self.data_blocks,
            "data_grid": list(self._data_grid),
            "basis": self._basis,
        }

    @classmethod
    def from_manifest(cls, manifest: dict[str, Any]) -> PolynomialCode:
        """Rebuild the code; raises InvalidManifest."""
        fields = Fields(manifest, cls.name, ("workers", "data_blocks", "data_grid", "basis"))
        with fields.as_invalid_manifest():
            code = cls(manifest["workers"], manifest["data_grid"], basis=manifest["basis"])
            blocks = integer("data_blocks", manifest["data_blocks"], 1, None)
            if blocks != code.data_blocks:
                raise InvalidCode(f"data_blocks must be {code.data_blocks}, got {blocks}")
        return code


def _powers(
    nodes: NDArray[np.float64], degrees: NDArray[np.intp], basis: str
) -> NDArray[np.float64]:
    if basis == "monomial":
        return np.asarray(nodes[:, None] ** degrees)
    return np.asarray(np.cos(np.outer(np.arccos(nodes), degrees)))
