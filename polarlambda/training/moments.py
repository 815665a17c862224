"""X^T Z of the data themselves, in one pass over them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarlambda.errors import BadInput
from polarlambda.training.models import Array

PIECE = 8 << 20


def sums_of_data(
    data: NDArray[Any] | str | os.PathLike[str], columns: Array, source_digest: str, client: Any
) -> Array:
    """X^T Z (d, m) for Z = `columns` (n, m), reading X once: an array, a path or an s3:// URL.

    Raises `BadInput` if it is not the X that was encoded (by its digest), and what
    `encoder.open_source` raises. Memory: a few pieces of 8 MB.
    """
    from encoder.ordered_scan import scan_in_order
    from encoder.pieces import Piece
    from encoder.sources import open_source

    with open_source(data, client) as source:
        n, d = source.shape
        if n != len(columns):
            raise BadInput(f"{source.description} has {n} rows, the labels {len(columns)}")
        sums = np.zeros((d, columns.shape[1]))

        def look(piece: Piece, entries: NDArray[Any]) -> None:
            lines, places = slice(piece.line0, piece.line1), slice(piece.start, piece.stop)
            values = entries.astype(np.float64)
            if source.order == "C":
                sums[places] += values.T @ columns[lines]
            else:
                sums[lines] += values @ columns[places]

        scan = scan_in_order(source, PIECE, lambda _: None, look)
        if scan.digest != source_digest:
            raise BadInput(
                f"{source.description} is not the data that the Gram matrix was made from (its "
                "digest differs): give the same file"
            )
    return sums
