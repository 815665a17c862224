"""The decoding plan of the sequential decoder: level operations, then one inverse transform."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from polarcodes.errors import InvalidPlan
from polarcodes.plan import Arrays, DecodingPlan, stored_indices
from polarcodes.sequential import Ids, LevelOperations, dense_stages, first_step
from polarcodes.transform import (
    Step,
    butterfly_stage,
    butterfly_steps,
    chunk_columns,
    without_ufunc_buffer,
)

# The workspace has about 5 N rows: beyond the L2 cache, but wide chunks pay for short levels.
_LEAST_SCRATCH, _MOST_SCRATCH = 1 << 20, 8 << 20


class SequentialPlan(DecodingPlan):
    """Completes the codeword by additions and transforms it back: X = D H y / N at the data slots.

    Cost for each column: the level operations (about 3 N where the set is barely decodable) and
    N log2 N additions. Memory besides Y and X: one workspace of 1 to 8 MiB, at most three quarters
    of a large Y, because columns are taken in chunks. Additions only, in a fixed order: the same
    bytes for any chunking, on any machine.
    """

    method = "sequential"

    def __init__(
        self,
        workers: Ids,
        operations: LevelOperations,
        slots: Ids,
        signs: NDArray[np.int8],
    ) -> None:
        super().__init__(workers, slots.size)
        self._operations = operations
        self._slots = slots
        self._signs = signs  # of the data slots
        self._order = workers.size + operations.missing.size
        self._steps = first_step(self._order)  # the workspace row of the first step
        self._scale = (signs / self._order)[:, None]  # powers of two: exact in every dtype
        levels = operations.levels
        longest_level = int(np.max(levels[:, 4] - levels[:, 0], initial=0))
        self._rows = self._steps + operations.first.size + 2 * longest_level

    def _apply(self, answers: NDArray[Any]) -> NDArray[Any]:
        total = answers.shape[1]
        budget = min(max(answers.nbytes * 3 // 4, _LEAST_SCRATCH), _MOST_SCRATCH)
        width = min(chunk_columns(self._rows, answers.itemsize, budget), max(total, 1))
        product = np.empty((self.data_blocks, total), answers.dtype)
        memory = np.empty(self._rows * width, answers.dtype)
        workspace = _Workspace(self, memory, width)
        with without_ufunc_buffer():
            for start in range(0, total, width):
                part = answers[:, start : start + width]
                if part.shape[1] < width:
                    workspace = _Workspace(self, memory, part.shape[1])
                workspace.decode(part, product[:, start : start + width])
        return product

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {
            **vars(self._operations),
            "slots": self._slots,
            "signs": self._signs,
        }

    @classmethod
    def _from_arrays(cls, arrays: Arrays) -> Self:
        workers = stored_indices(arrays, "workers", None)
        missing = stored_indices(arrays, "missing", None)
        order = workers.size + missing.size
        if sorted([*workers.tolist(), *missing.tolist()]) != list(range(order)):
            raise InvalidPlan("workers and missing must name each of 0..N-1 once between them")
        first = stored_indices(arrays, "first", None)
        operations = LevelOperations(
            first=first,
            second=stored_indices(arrays, "second", None),
            levels=stored_indices(arrays, "levels", first.size + 1, columns=5),
            missing=missing,
            filled=stored_indices(arrays, "filled", first_step(order) + first.size),
        )
        slots = stored_indices(arrays, "slots", order)
        signs = np.asarray(arrays["signs"])
        if not (
            _runs_in_order(operations, order)
            and operations.filled.size == missing.size
            and signs.shape == slots.shape
            and np.isin(signs, (-1, 1)).all()
        ):
            raise InvalidPlan("the arrays of the plan do not fit together: store it again")
        return cls(workers, operations, slots, signs.astype(np.int8))


class _Workspace:
    """The memory of one chunk of columns, and the calls that decode in it.

    Making the views takes longer than the shorter steps, so they are made once for all chunks.
    """

    def __init__(self, plan: SequentialPlan, memory: NDArray[Any], columns: int) -> None:
        self._plan = plan
        self._values = memory[: plan._rows * columns].reshape(plan._rows, columns)
        self._scale = plan._scale.astype(memory.dtype)
        self._fill = [*self._dense_stages(), *self._levels()]
        codeword = self._values[: plan._order]
        self._room = self._values[plan._order : 2 * plan._order]
        self._transform, self._inputs = butterfly_steps(codeword, self._room)
        other = self._room if self._inputs is codeword else codeword
        self._picked = other[: plan.data_blocks]

    def decode(self, part: NDArray[Any], product: NDArray[Any]) -> None:
        """Write the data blocks' columns to ``product``, given those of the answers."""
        plan, operations = self._plan, self._plan._operations
        # Plain copies between the caller's arrays and the workspace; a scatter or a product that
        # reaches into distant pages takes several times as long.
        self._room[: plan.workers.size] = part
        self._values[plan.workers] = self._room[: plan.workers.size]
        self._values[operations.missing] = 0
        self._values[plan._steps - 1] = 0
        for step in self._fill:
            step()
        self._values[operations.missing] = self._values[operations.filled]
        for step in self._transform:
            step()
        self._inputs.take(plan._slots, axis=0, out=self._picked, mode="clip")
        np.multiply(self._picked, self._scale, out=self._picked)
        product[...] = self._picked

    def _dense_stages(self) -> list[Step]:
        order = self._plan._order
        steps: list[Step] = []
        for stage in range(dense_stages(order)):
            rows = self._values[stage * order : (stage + 2) * order].reshape(2, order, -1)
            steps += butterfly_stage(rows[0], rows[1], order >> (stage + 1))
        return steps

    def _levels(self) -> list[Step]:
        operations = self._plan._operations
        results = self._values[self._plan._steps :]
        spare = results[operations.first.size :]
        steps: list[Step] = []
        for begin, halves, minus, whole, end in operations.levels.tolist():
            size = end - begin
            rows = np.concatenate((operations.first[begin:end], operations.second[begin:end]))
            taken, result = spare[: 2 * size], results[begin:end]
            # mode="clip" lets take() write straight to its target; the rows are in range.
            steps.append(partial(self._values.take, rows, 0, taken, "clip"))
            for action, part in (
                (np.add, slice(0, minus - begin)),
                (np.subtract, slice(minus - begin, size)),
            ):
                if part.start < part.stop:
                    a, b = taken[:size][part], taken[size:][part]
                    steps.append(partial(action, a, b, result[part]))
            if halves < whole:
                halved = results[halves:whole]
                steps.append(partial(np.multiply, halved, 0.5, halved))
        return steps


def _runs_in_order(operations: LevelOperations, order: int) -> bool:
    """Whether the levels cover all steps, and each step uses only what is there by then."""
    steps, levels = operations.first.size, operations.levels
    if operations.second.size != steps:
        return False
    if not levels.size:
        return steps == 0
    begins, ends = levels[:, 0], levels[:, 4]
    if begins[0] != 0 or ends[-1] != steps or np.any(begins[1:] != ends[:-1]):
        return False
    if np.any(np.diff(levels, axis=1) < 0):
        return False
    ready = np.repeat(first_step(order) + begins, ends - begins)
    return bool(np.all(np.maximum(operations.first, operations.second) < ready))
