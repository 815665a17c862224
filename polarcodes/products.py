"""Products of a small matrix with many columns, the same bytes for every column.

BLAS adds up in an order that may depend on the width of the product. Here the columns are taken in
chunks of one fixed width, the last one padded with zeros.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDTH = 64


def column_product(matrix: NDArray[Any], columns: NDArray[Any], out: NDArray[Any]) -> None:
    """Write ``matrix`` (r, c) times ``columns`` (c, L) to ``out`` (r, L).

    Computed in float64, or in float32 where ``matrix`` is. ``out`` may share memory with
    ``columns`` if it has the same columns of it. Scratch: (r + c) x 64 values.
    """
    part = np.zeros((matrix.shape[1], WIDTH), matrix.dtype)
    result = np.empty((matrix.shape[0], WIDTH), matrix.dtype)
    for start in range(0, columns.shape[1], WIDTH):
        piece = columns[:, start : start + WIDTH]
        width = piece.shape[1]
        part[:, :width] = piece
        part[:, width:] = 0
        np.matmul(matrix, part, out=result)
        out[:, start : start + width] = result[:, :width]
