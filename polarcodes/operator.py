"""Generator rows as an operator: applied by fast transforms, never stored as a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.checks import answer_rows, data_rows

if TYPE_CHECKING:
    from polarcodes.code import ErasureCode


class GeneratorRows:
    """The m x s matrix of generator rows of the workers in S.

    ``apply`` takes data to coded values, ``adjoint`` goes back (transposed, not inverted); both in
    float32 or float64, as the argument is.
    """

    def __init__(self, code: ErasureCode, workers: NDArray[np.intp]) -> None:
        self._code = code
        self._workers = workers

    @property
    def shape(self) -> tuple[int, int]:
        """(m, s)."""
        return len(self._workers), self._code.data_blocks

    def apply(self, X: Any) -> NDArray[Any]:
        """Return the rows times X, shape (s, L) -> (m, L)."""
        blocks = data_rows(X, self._code.data_blocks)
        narrow = blocks.dtype.kind == "f" and blocks.dtype.itemsize <= 4
        blocks = blocks.astype(np.float32 if narrow else np.float64, copy=False)
        return self._code._encode_rows(blocks, self._workers)

    def adjoint(self, Y: Any) -> NDArray[Any]:
        """Return the rows transposed times Y, shape (m, L) -> (s, L)."""
        return self._code._adjoint(answer_rows(Y, self._workers), self._workers)

    def to_dense(self) -> NDArray[np.float64]:
        """Return the matrix itself, shape (m, s)."""
        return self.apply(np.eye(self._code.data_blocks))
