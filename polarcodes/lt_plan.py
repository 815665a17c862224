"""The decoding plan of an LT code: one subtraction for each edge, and a small dense system."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from polarcodes.errors import InvalidPlan
from polarcodes.peeling import Peeling, Sums
from polarcodes.plan import Arrays, DecodingPlan, stored_indices
from polarcodes.products import column_product

Ids = NDArray[np.intp]

_COLUMNS = 2048


class PeelingPlan(DecodingPlan):
    """Solve blocks one by one from sums with one unknown, twice when some were put aside.

    Cost for each column: an addition per edge of the sums used, then k r for k inactive blocks and
    the same additions again. Memory besides Y and X: a chunk of 2,048 columns of s values.
    """

    method = "peeling"

    def __init__(self, workers: Ids, sums: Sums, peeling: Peeling, data_blocks: int) -> None:
        super().__init__(workers, data_blocks)
        self._sums = sums  # of the workers in ascending order
        self._peeling = peeling
        self._sorted = np.argsort(workers)
        self._steps = [
            (block, index, [other for other in sums.row(index) if other != block])
            for block, index in zip(peeling.solved.tolist(), peeling.sources.tolist(), strict=True)
        ]

    def _apply(self, answers: NDArray[Any]) -> NDArray[Any]:
        product = np.empty((self.data_blocks, answers.shape[1]), answers.dtype)
        for start in range(0, answers.shape[1], _COLUMNS):
            part = answers[self._sorted, start : start + _COLUMNS]
            product[:, start : start + _COLUMNS] = self._solve(part)
        return product

    def _solve(self, part: NDArray[Any]) -> NDArray[Any]:
        peeling = self._peeling
        part = part.astype(np.float64)
        values = np.zeros((self.data_blocks, part.shape[1]))
        self._run(part, values)
        if peeling.inactive.size:
            left = part[peeling.spare]
            for row, index in enumerate(peeling.spare.tolist()):
                for block in self._sums.row(index):
                    left[row] -= values[block]
            symbols = np.empty((peeling.inactive.size, part.shape[1]))
            column_product(peeling.core, left, symbols)
            values[peeling.inactive] = symbols
            self._run(part, values)
        return values

    def _run(self, part: NDArray[Any], values: NDArray[Any]) -> None:
        for block, index, others in self._steps:
            target = values[block]
            target[...] = part[index]
            for other in others:
                target -= values[other]

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays = {
            "starts": self._sums.starts,
            "blocks": self._sums.blocks,
            **vars(self._peeling),
        }
        return {name: values.copy() for name, values in arrays.items()}

    @classmethod
    def _from_arrays(cls, arrays: Arrays) -> Self:
        workers = stored_indices(arrays, "workers", None)
        data_blocks = np.asarray(arrays["solved"]).size + np.asarray(arrays["inactive"]).size
        blocks = stored_indices(arrays, "blocks", data_blocks)
        starts = stored_indices(arrays, "starts", blocks.size + 1)
        peeling = Peeling(
            solved=stored_indices(arrays, "solved", data_blocks),
            sources=stored_indices(arrays, "sources", workers.size),
            inactive=stored_indices(arrays, "inactive", data_blocks),
            spare=stored_indices(arrays, "spare", workers.size),
            core=np.asarray(arrays["core"]).astype(np.float64),
        )
        known = [*peeling.inactive.tolist(), *peeling.solved.tolist()]
        fits = (
            starts.size == workers.size + 1
            and starts[0] == 0
            and starts[-1] == blocks.size
            and not np.any(np.diff(starts) < 0)
            and sorted(known) == list(range(data_blocks))
            and peeling.sources.size == peeling.solved.size
            and peeling.core.shape == (peeling.inactive.size, peeling.spare.size)
            and np.isfinite(peeling.core).all()
        )
        if not fits:
            raise InvalidPlan("the arrays of the plan do not fit together: store it again")
        sums = Sums(starts, blocks)
        ready = set(peeling.inactive.tolist())
        for block, index in zip(peeling.solved.tolist(), peeling.sources.tolist(), strict=True):
            row = set(sums.row(index))
            if block not in row or not row - {block} <= ready:
                raise InvalidPlan("a step of the plan uses a block that is not there yet")
            ready.add(block)
        return cls(workers, sums, peeling, data_blocks)
