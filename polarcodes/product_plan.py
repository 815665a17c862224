"""The decoding plan of a product code: lines to complete, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from polarcodes.errors import InvalidPlan
from polarcodes.plan import Arrays, DecodingPlan, stored_indices
from polarcodes.products import column_product

Ids = NDArray[np.intp]
Float = NDArray[np.float64]

_COLUMNS = 1024


@dataclass(frozen=True)
class Fill:
    """Cells ``filled`` are ``matrix`` times cells ``known``, all of one line."""

    known: Ids
    filled: Ids
    matrix: Float


def fill_grid(
    lines: tuple[Float, Float], known: NDArray[np.bool_], *, only_ask: bool = False
) -> list[Fill] | None:
    """Complete lines of the grid until the data corner is known; None if that is never so.

    ``lines`` are the systematic generators of columns and rows, ``known`` the flags of the n1 x n2
    cells. A line with as many known cells as data cells is completed, from the first of them.
    ``only_ask`` returns an empty list of steps instead of the steps.
    """
    first, second = lines
    grid = np.arange(known.size).reshape(known.shape)
    known = known.copy()
    steps: list[Fill] = []
    while not known[: first.shape[1], : second.shape[1]].all():
        views = [(known[:, c], grid[:, c], first) for c in range(known.shape[1])]
        views += [(known[r], grid[r], second) for r in range(known.shape[0])]
        moved = False
        for flags, cells, line in views:
            there = np.flatnonzero(flags)
            if flags.all() or there.size < line.shape[1]:
                continue
            if not only_ask:
                missing = np.flatnonzero(~flags)
                used = there[: line.shape[1]]
                matrix = np.linalg.solve(line[used].T, line[missing].T).T
                if np.isin(line, (0.0, 1.0)).all():
                    matrix = np.rint(matrix)  # sums and differences
                steps.append(Fill(cells[used], cells[missing], matrix.astype(np.float64)))
            flags[:] = True
            moved = True
        if not moved:
            return None
    return steps


def fill_cells(fills: list[Fill], values: Float) -> None:
    """Complete the lines of ``values`` (cells, columns), in order and in place."""
    for step in fills:
        filled = np.empty((step.filled.size, values.shape[1]))
        column_product(step.matrix, values[step.known], filled)
        values[step.filled] = filled


def stored_fills(fills: list[Fill]) -> dict[str, NDArray[Any]]:
    """Return the steps as plain arrays."""
    empty = [np.empty(0, np.intp)]
    return {
        "sizes": np.array([[s.known.size, s.filled.size] for s in fills], int).reshape(-1, 2),
        "known": np.concatenate([s.known for s in fills] or empty),
        "filled": np.concatenate([s.filled for s in fills] or empty),
        "factors": np.concatenate([s.matrix.ravel() for s in fills] or [np.empty(0)]),
    }


def unpack_fills(arrays: Arrays, workers: Ids, cells: int) -> tuple[list[Fill], NDArray[np.bool_]]:
    """Return the stored steps, and which cells are known after them; raises InvalidPlan."""
    known, filled = (stored_indices(arrays, name, cells) for name in ("known", "filled"))
    factors, sizes = np.asarray(arrays["factors"]), np.asarray(arrays["sizes"])
    fits = (
        sizes.ndim == 2
        and sizes.shape[1] == 2
        and sizes.dtype.kind in "iu"
        and np.all(sizes >= 0)
        and sizes[:, 0].sum() == known.size
        and sizes[:, 1].sum() == filled.size
        and factors.shape == (int((sizes[:, 0] * sizes[:, 1]).sum()),)
        and factors.dtype.kind == "f"
        and np.isfinite(factors).all()
    )
    if not fits:
        raise InvalidPlan("the arrays of the plan do not fit together: store it again")
    ready = np.zeros(cells, bool)
    ready[workers] = True
    steps = []
    for have, want in sizes.tolist():
        step = Fill(known[:have], filled[:want], factors[: have * want].reshape(want, have))
        known, filled, factors = known[have:], filled[want:], factors[have * want :]
        if not ready[step.known].all():
            raise InvalidPlan("a step of the plan uses a cell that is not there yet")
        ready[step.filled] = True
        steps.append(step)
    return steps, ready


class GridPlan(DecodingPlan):
    """Complete the lines in order, then pick the data cells. Memory: 1,024 columns of N values."""

    method = "grid"

    def __init__(self, workers: Ids, cells: int, slots: Ids, steps: list[Fill]) -> None:
        super().__init__(workers, slots.size)
        self._cells = cells
        self._slots = slots
        self._steps = steps

    def _apply(self, answers: NDArray[Any]) -> NDArray[Any]:
        product = np.empty((self.data_blocks, answers.shape[1]), answers.dtype)
        for start in range(0, answers.shape[1], _COLUMNS):
            part = answers[:, start : start + _COLUMNS]
            values = np.zeros((self._cells, part.shape[1]))
            values[self.workers] = part
            fill_cells(self._steps, values)
            product[:, start : start + _COLUMNS] = values[self._slots]
        return product

    def _arrays(self) -> dict[str, NDArray[Any]]:
        slots = self._slots.copy()
        return {"cells": np.array(self._cells), "slots": slots, **stored_fills(self._steps)}

    @classmethod
    def _from_arrays(cls, arrays: Arrays) -> Self:
        cells = int(arrays["cells"])
        workers = stored_indices(arrays, "workers", cells)
        slots = stored_indices(arrays, "slots", cells)
        steps, ready = unpack_fills(arrays, workers, cells)
        if not ready[slots].all():
            raise InvalidPlan("the plan leaves data cells unknown")
        return cls(workers, cells, slots, steps)
