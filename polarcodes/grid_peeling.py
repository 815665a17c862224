"""Alternating decoding of a grid: lines that their component code decodes complete one another.

Cells (i, j) of an N1 x N2 grid hold the answers of the workers. A row is a codeword of the right
code, a column one of the left code. Whenever the known cells of a line are decodable its missing
cells are re-encoded, which may make the lines across decodable; the set of cells that are known
when nothing moves any more does not depend on the order (arXiv 2309.00682, appendix; product codes:
Elias 1954). All data blocks are determined if and only if that set is the whole grid.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polarcodes.arrivals import Arrivals
from polarcodes.code import ErasureCode

Flags = NDArray[np.bool_]
Ids = NDArray[np.intp]

LINE_SHARE = 0.1
"""A line must meet this share of the tolerance: rounding errors grow from pass to pass."""


@dataclass(frozen=True)
class Line:
    """A line to complete: row `index` (axis 0) or column `index` (axis 1), from its known cells."""

    axis: int
    index: int
    known: Ids
    missing: Ids


def complete_lines(
    left: ErasureCode, right: ErasureCode, known: Flags, answer_error: float, tolerance: float
) -> list[Line] | None:
    """Return the lines to complete, in order, until all cells of (N1, N2) flags are known.

    None if alternating decoding stops before that. Asks a component code at most once for each line
    and pass.
    """
    rule = {"answer_error": answer_error, "tolerance": LINE_SHARE * tolerance}
    known = known.copy()
    lines: list[Line] = []
    asked: dict[tuple[int, bytes], bool] = {}
    moved = True
    while moved and not known.all():
        moved = False
        for axis, code in ((1, left), (0, right)):
            flags = known if axis == 0 else known.T
            counts = flags.sum(axis=1)
            for index in np.flatnonzero((counts >= code.data_blocks) & (counts < code.workers)):
                there = np.flatnonzero(flags[index])
                pattern = axis, there.tobytes()
                if pattern not in asked:
                    asked[pattern] = code.decodable(there, **rule)
                if not asked[pattern]:
                    continue
                missing = np.flatnonzero(~flags[index])
                lines.append(Line(axis, int(index), there, missing))
                flags[index] = True
                moved = True
    return lines if known.all() else None


class GridArrivals(Arrivals):
    """Arrivals of a grid: each one updates its row and its column, and what these complete.

    Every cell becomes known once, by its answer or by a decoded line, and is then told to the
    arrivals states of its two lines: N states' updates in all, whatever the order.
    """

    def __init__(
        self, left: ErasureCode, right: ErasureCode, answer_error: float, tolerance: float
    ) -> None:
        super().__init__(left.workers * right.workers, answer_error, tolerance)
        rule = {"answer_error": answer_error, "tolerance": LINE_SHARE * tolerance}
        self._columns = right.workers
        self._known = np.zeros((left.workers, right.workers), bool)
        self._left_over = self._known.size
        self._states = (
            [right.arrivals(**rule) for _ in range(left.workers)],
            [left.arrivals(**rule) for _ in range(right.workers)],
        )
        self._least = right.data_blocks, left.data_blocks

    @property
    def decodable(self) -> bool:
        """Whether every cell of the grid is known or follows."""
        return self._left_over == 0

    def _settle(self, worker: int) -> None:
        cells = [divmod(worker, self._columns)]
        while cells:
            row, column = cells.pop()
            if self._known[row, column]:
                continue
            self._known[row, column] = True
            self._left_over -= 1
            for axis, index, place in ((0, row, column), (1, column, row)):
                state = self._states[axis][index]
                state.add(place)
                if len(state) >= self._least[axis] and state.decodable:
                    cells += self._rest(axis, index)

    def _rest(self, axis: int, index: int) -> list[tuple[int, int]]:
        flags = self._known[index] if axis == 0 else self._known[:, index]
        missing = np.flatnonzero(~flags).tolist()
        return [(index, m) if axis == 0 else (m, index) for m in missing]
