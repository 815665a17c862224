"""The decoding plan of the sequential decoder: level operations, then one inverse transform."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from polarcodes.errors import InvalidPlan
from polarcodes.plan import Arrays, DecodingPlan, stored_indices
from polarcodes.sequential import (
    ADD,
    HALF_ADD,
    HALF_SUBTRACT,
    Ids,
    LevelOperations,
)
from polarcodes.transform import butterflies, chunk_columns


class SequentialPlan(DecodingPlan):
    """Completes the codeword by additions and transforms it back: X = D H y / N at the data slots.

    Cost for each column: the level operations (about 3 N where the set is barely decodable) and
    N log2 N additions. Memory besides Y and X: one workspace of about a megabyte, because columns
    are taken in chunks. Additions only, in a fixed order: the same bytes for any chunking.
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

    def _apply(self, answers: NDArray[Any]) -> NDArray[Any]:
        order, operations = self._order, self._operations
        rows = order + 1 + operations.first.size
        total = answers.shape[1]
        width = min(chunk_columns(rows + 2 * order, answers.itemsize), max(total, 1))
        product = np.empty((self.data_blocks, total), answers.dtype)
        scale = (self._signs / order).astype(answers.dtype)[:, None]  # a power of two: exact
        memory = np.empty((rows + 2 * order) * width, answers.dtype)
        for start in range(0, total, width):
            part = answers[:, start : start + width]
            columns = part.shape[1]
            block = memory[: (rows + 2 * order) * columns].reshape(-1, columns)
            values, spare, codeword = np.split(block, (rows, rows + order))
            values[self.workers] = part
            values[order] = 0
            self._run(values, spare)
            codeword[...] = values[:order]
            codeword[operations.missing] = values[operations.filled]
            inputs = butterflies(codeword, spare)
            np.multiply(inputs[self._slots], scale, out=product[:, start : start + width])
        return product

    def _run(self, values: NDArray[Any], spare: NDArray[Any]) -> None:
        """Carry out the level operations on one chunk of columns."""
        operations = self._operations
        starts = operations.starts.tolist()
        target = self._order + 1
        for kind, begin, end in zip(operations.kinds.tolist(), starts, starts[1:], strict=False):
            result = values[target + begin : target + end]
            other = spare[: end - begin]
            # mode="clip" lets take() write straight into `out`; the rows were checked already.
            values.take(operations.first[begin:end], axis=0, out=result, mode="clip")
            values.take(operations.second[begin:end], axis=0, out=other, mode="clip")
            if kind in (ADD, HALF_ADD):
                result += other
            else:
                result -= other
            if kind in (HALF_ADD, HALF_SUBTRACT):
                result *= 0.5

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
        steps = np.arange(order + 1, order + 1 + first.size)
        operations = LevelOperations(
            first=first,
            second=stored_indices(arrays, "second", None),
            starts=stored_indices(arrays, "starts", first.size + 1),
            kinds=stored_indices(arrays, "kinds", 4),
            missing=missing,
            filled=stored_indices(arrays, "filled", order + 1 + first.size),
        )
        slots = stored_indices(arrays, "slots", order)
        signs = np.asarray(arrays["signs"])
        widths = np.diff(operations.starts)
        if (
            operations.second.size != first.size
            or operations.starts.size != operations.kinds.size + 1
            or operations.starts[0] != 0
            or operations.starts[-1] != first.size
            or np.any(widths < 1)
            or operations.filled.size != missing.size
            or signs.shape != slots.shape
            or not np.isin(signs, (-1, 1)).all()
        ):
            raise InvalidPlan("the arrays of the plan do not fit together: store it again")
        ready = np.repeat(order + 1 + operations.starts[:-1], widths)
        if steps.size and np.any(np.maximum(first, operations.second) >= ready):
            raise InvalidPlan("a step of the plan uses a value that is not there yet")
        return cls(workers, operations, slots, signs.astype(np.int8))
