"""What one pass over a matrix says of its columns: constant ones, and those that others determine.

Training on a matrix with such columns has no single solution; whoever trains wants to know.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from encoder.pieces import Piece

MOST_COLUMNS = 512  # beyond, X^T X costs more than the pass itself
RANK_TOLERANCE = 1e-9  # of the largest eigenvalue of the correlations: rounding of their sums


class ColumnScan:
    """Fed with the pieces of X (n, d) in the order of the pass; `order` is that of X.

    Memory: 2 d numbers, and d x d of them for the count of dependent columns, which is made for
    d <= 512 and rows stored together.
    """

    def __init__(self, shape: tuple[int, int], order: str) -> None:
        self._rows, self._columns = shape
        self._order = order
        self._low = np.full(self._columns, np.inf)
        self._high = np.full(self._columns, -np.inf)
        counted = order == "C" and self._columns <= MOST_COLUMNS
        self._gram = np.zeros((self._columns, self._columns)) if counted else None
        self._sum = np.zeros(self._columns)
        self._origin: NDArray[np.float64] | None = None

    def add(self, piece: Piece, entries: NDArray[Any]) -> None:
        """Take in a piece: rows by columns in C order, columns by rows in Fortran order."""
        by_row = self._order == "C"
        columns = slice(piece.start, piece.stop) if by_row else slice(piece.line0, piece.line1)
        axis = 0 if by_row else 1
        self._low[columns] = np.minimum(self._low[columns], entries.min(axis=axis))
        self._high[columns] = np.maximum(self._high[columns], entries.max(axis=axis))
        if self._gram is None:
            return
        if piece.stop - piece.start < self._columns:  # a row longer than a piece
            self._gram = None
            return
        values = entries.astype(np.float64)
        if self._origin is None:  # sums of squares about a point nearby lose fewer digits
            self._origin = values.mean(axis=0)
        values -= self._origin
        self._sum += values.sum(axis=0)
        with np.errstate(over="ignore", invalid="ignore"):
            self._gram += values.T @ values

    @property
    def constant(self) -> tuple[int, ...]:
        """The columns whose entries are all the same, ascending."""
        return tuple(np.flatnonzero(self._low == self._high).tolist())

    @property
    def dependent(self) -> int | None:
        """How many columns follow linearly from the others and a constant; None if not counted.

        Cost: the eigenvalues of a d x d matrix.
        """
        if self._gram is None or not np.isfinite(self._gram).all():
            return None
        covariance = self._gram - np.outer(self._sum, self._sum) / self._rows
        return dependent_columns(covariance)


def dependent_columns(covariance: NDArray[np.float64]) -> int:
    """d minus the numerical rank of a covariance matrix (d, d), constant columns included."""
    scale = np.sqrt(np.maximum(np.diag(covariance), 0))
    varying = scale > RANK_TOLERANCE * max(scale.max(), np.finfo(float).tiny)
    kept = covariance[np.ix_(varying, varying)] / np.outer(scale[varying], scale[varying])
    values = np.linalg.eigvalsh(kept) if kept.size else np.zeros(0)
    rank = int((values > RANK_TOLERANCE * values.max()).sum()) if values.size else 0
    return len(covariance) - rank
