"""The decoding plan of a grid of two coded factors: complete the lines, then undo both codes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from polarcodes.code import ErasureCode
from polarcodes.errors import InvalidPlan
from polarcodes.grid_peeling import Line
from polarcodes.plan import Arrays, DecodingPlan, stored_indices
from polarcodes.product_plan import Fill, fill_cells, stored_fills, unpack_fills
from polarcodes.products import column_product

Float = NDArray[np.float64]
Ids = NDArray[np.intp]

_COLUMNS = 1024


class TensorPlan(DecodingPlan):
    """Fill the missing cells line by line, then X = (W1 (x) W2) Y with the decoders of whole lines.

    ``first`` (s1, N1) and ``second`` (s2, N2) undo the left and the right code. Memory: 1,024
    columns of N values in float64. Cost per column: e N_i multiplications for e missing cells of a
    line, then s1 N1 N2 + s1 s2 N2.
    """

    method = "alternating"

    def __init__(self, workers: Ids, first: Float, second: Float, fills: list[Fill]) -> None:
        super().__init__(workers, first.shape[0] * second.shape[0])
        self._first = first
        self._second = second
        self._fills = fills

    @classmethod
    def make(
        cls, workers: Ids, left: ErasureCode, right: ErasureCode, lines: list[Line], rule: Any
    ) -> Self:
        """Take the decoder that each component code chooses for a line; O(N^1.5) for each line."""
        grid = np.arange(left.workers * right.workers).reshape(left.workers, right.workers)
        fills, matrices = [], {}
        for line in lines:
            code, cells = (
                (right, grid[line.index]) if line.axis == 0 else (left, grid.T[line.index])
            )
            pattern = line.axis, line.known.tobytes()
            if pattern not in matrices:
                decoded = code.plan(line.known, **rule).apply(np.eye(line.known.size))
                matrices[pattern] = code._encode_rows(decoded, line.missing)
            fills.append(Fill(cells[line.known], cells[line.missing], matrices[pattern]))
        return cls(workers, _whole(left), _whole(right), fills)

    def _apply(self, answers: NDArray[Any]) -> NDArray[Any]:
        (s1, n1), (s2, n2) = self._first.shape, self._second.shape
        product = np.empty((s1 * s2, answers.shape[1]), answers.dtype)
        for start in range(0, answers.shape[1], _COLUMNS):
            part = answers[:, start : start + _COLUMNS]
            width = part.shape[1]
            values = np.zeros((n1 * n2, width))
            values[self.workers] = part
            fill_cells(self._fills, values)
            half = np.empty((s1, n2 * width))
            column_product(self._first, values.reshape(n1, n2 * width), half)
            whole = np.empty((s1, s2, width))
            for row, line in enumerate(half.reshape(s1, n2, width)):
                column_product(self._second, line, whole[row])
            product[:, start : start + width] = whole.reshape(s1 * s2, width)
        return product

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"first": self._first, "second": self._second, **stored_fills(self._fills)}

    @classmethod
    def _from_arrays(cls, arrays: Arrays) -> Self:
        first, second = (np.asarray(arrays[name]) for name in ("first", "second"))
        for name, matrix in (("first", first), ("second", second)):
            if matrix.ndim != 2 or matrix.dtype.kind != "f" or not np.isfinite(matrix).all():
                raise InvalidPlan(f"{name} must be a matrix of finite numbers")
        cells = first.shape[1] * second.shape[1]
        workers = stored_indices(arrays, "workers", cells)
        fills, ready = unpack_fills(arrays, workers, cells)
        if not ready.all():
            raise InvalidPlan("the plan leaves cells of the grid unknown")
        return cls(workers, first.astype(np.float64), second.astype(np.float64), fills)


def _whole(code: ErasureCode) -> Float:
    """Return the decoder of a line whose answers are all known, as a matrix (s, N)."""
    everybody = np.arange(code.workers)
    apply: Callable[[Any], NDArray[Any]] = code.plan(everybody, tolerance=np.inf).apply
    return np.asarray(apply(np.eye(code.workers)))
