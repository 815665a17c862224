"""The decoding plan of the sequential decoder: level operations, then one inverse transform."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from polarcodes.errors import InvalidPlan
from polarcodes.plan import Arrays, DecodingPlan, stored_indices
from polarcodes.sequential import Ids, LevelOperations, dense_stages, first_step
from polarcodes.transform import butterflies, butterfly_stage, chunk_columns, without_ufunc_buffer

# The workspace has about 5 N rows: beyond the L2 cache, but wide chunks pay for short levels.
_LEAST_SCRATCH, _MOST_SCRATCH = 1 << 20, 8 << 20


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
        self._steps = first_step(self._order)  # the workspace row of the first step
        self._scale = (signs / self._order)[:, None]  # powers of two: exact in every dtype
        levels = operations.levels
        self._longest_level = int(np.max(levels[:, 4] - levels[:, 0], initial=0))

    def _apply(self, answers: NDArray[Any]) -> NDArray[Any]:
        rows = self._steps + self._operations.first.size + self._longest_level
        total = answers.shape[1]
        budget = min(max(answers.nbytes * 3 // 4, _LEAST_SCRATCH), _MOST_SCRATCH)
        width = min(chunk_columns(rows, answers.itemsize, budget), max(total, 1))
        product = np.empty((self.data_blocks, total), answers.dtype)
        memory = np.empty(rows * width, answers.dtype)
        with without_ufunc_buffer():
            for start in range(0, total, width):
                part = answers[:, start : start + width]
                workspace = memory[: rows * part.shape[1]].reshape(rows, part.shape[1])
                self._decode(part, workspace, product[:, start : start + width])
        return product

    def _decode(self, part: NDArray[Any], workspace: NDArray[Any], product: NDArray[Any]) -> None:
        """Decode one chunk of columns."""
        order, operations = self._order, self._operations
        steps = self._steps + operations.first.size
        workspace[self.workers] = part
        workspace[operations.missing] = 0
        self._run(workspace[:steps], workspace[steps:])
        workspace[operations.missing] = workspace[operations.filled]
        codeword, spare = workspace[:order], workspace[order : 2 * order]
        inputs = butterflies(codeword, spare)
        other = spare if inputs is codeword else codeword
        picked = inputs.take(self._slots, axis=0, out=other[: self.data_blocks], mode="clip")
        np.multiply(picked, self._scale.astype(part.dtype), out=product)

    def _run(self, values: NDArray[Any], spare: NDArray[Any]) -> None:
        """Carry out the dense stages and the level operations on one chunk of columns."""
        order = self._order
        for stage in range(dense_stages(order)):
            source, sums = values[stage * order :], values[(stage + 1) * order :]
            butterfly_stage(source[:order], sums[:order], order >> (stage + 1))
        values[self._steps - 1] = 0
        first, second = self._operations.first, self._operations.second
        results = values[self._steps :]
        for begin, halves, minus, whole, end in self._operations.levels.tolist():
            # mode="clip" lets take() write straight into `out`; the rows were checked before.
            # The ufuncs get `out` because `a[i:j] += b` copies a[i:j] onto itself as well.
            result, other = results[begin:end], spare[: end - begin]
            values.take(first[begin:end], axis=0, out=result, mode="clip")
            values.take(second[begin:end], axis=0, out=other, mode="clip")
            plus = minus - begin
            if plus:
                np.add(result[:plus], other[:plus], out=result[:plus])
            if minus < end:
                np.subtract(result[plus:], other[plus:], out=result[plus:])
            if halves < whole:
                halved = results[halves:whole]
                np.multiply(halved, 0.5, out=halved)

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
