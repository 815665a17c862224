"""An array in memory as a source."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from encoder.errors import SourceRefused
from encoder.pieces import Piece
from encoder.sources.source import Source, check_matrix


class ArraySource(Source):
    """An array in memory, any strides. The caller must not write to it while it is encoded."""

    def __init__(self, array: NDArray[Any]) -> None:
        if isinstance(array, np.ma.MaskedArray):
            raise SourceRefused(
                "array: masked entries have no value to multiply; use .filled(value) first"
            )
        self.shape = check_matrix("array", array.shape, array.dtype)
        self.dtype = array.dtype
        # The order numpy.save would write, so that an array and its saved file are the same source.
        self.order = "F" if array.flags.fnc else "C"
        self.description = "array"
        plain = array.view(np.ndarray)
        self._lines = plain if self.order == "C" else plain.T

    def read_piece(self, piece: Piece) -> NDArray[Any]:
        """A view: nothing is copied."""
        return self._lines[piece.line0 : piece.line1, piece.start : piece.stop]

    def check_unchanged(self) -> None:
        """Arrays have no version to look at: nothing is checked."""
