"""The decoding plan of a polar code from kernels: sums that complete the codeword, then G^-1."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from polarcodes.errors import InvalidPlan
from polarcodes.kernels.sequential import SumSteps
from polarcodes.kernels.transform import KernelTransform
from polarcodes.plan import Arrays, DecodingPlan, stored_indices
from polarcodes.transform import without_ufunc_buffer

_SCRATCH = 1 << 24  # bytes of workspace aimed at: wide chunks pay for short levels
_WIDEST = 1024  # columns of a chunk
_VALUES = 1 << 14  # in a block of the inverse transform: 128 KiB of float64, twice

Ids = NDArray[np.intp]
Float = NDArray[np.float64]


class KernelPlan(DecodingPlan):
    """Fills the missing answers in, step by step, and applies the inverse: X = D G^-1 y.

    Cost for each column: the steps, of 2 l - 1 terms at most, and one inverse transform, in float64
    whatever the answers are. Steps work on each column alone; the inverse takes blocks of one fixed
    width, padded with zeros, so that BLAS adds up in the same order for every column: the same
    bytes for any chunking. Memory besides Y and X: one workspace of at most 16 MiB, or 64 columns
    of N' and the steps if that is more.
    """

    method = "sequential-kernels"

    def __init__(
        self, workers: Ids, rows: Ids, steps: SumSteps, slots: Ids, transform: KernelTransform
    ) -> None:
        super().__init__(workers, slots.size)
        self._rows = rows  # of the transform, in the order of the workers
        self._steps = steps
        self._slots = slots
        self._transform = transform

    def _apply(self, answers: NDArray[Any]) -> NDArray[Any]:
        order, total = self._transform.order, answers.shape[1]
        steps = self._steps
        height = order + 1 + len(steps.terms)
        longest = int(np.max(steps.levels[:, 1] - steps.levels[:, 0], initial=1))
        width = min(max(_SCRATCH // (8 * (height + longest)), 64), _WIDEST, max(total, 1))
        memory = np.zeros(height * width)
        spare = np.empty(longest * width)
        block = np.zeros((2, order, min(max(_VALUES // order, 64), _WIDEST)))
        product = np.empty((self.data_blocks, total), answers.dtype)
        with without_ufunc_buffer():
            for start in range(0, total, width):
                part = answers[:, start : start + width]
                columns = part.shape[1]
                values = memory[: height * columns].reshape(height, columns)
                values[order] = 0.0
                values[self._rows] = part
                self._fill(values, spare[: longest * columns].reshape(longest, columns))
                values[steps.missing] = values[steps.filled]
                self._invert(values[:order], block, product[:, start : start + columns])
        return product

    def _invert(self, codeword: Float, block: Float, product: NDArray[Any]) -> None:
        signs = self._transform.signs[self._slots].astype(np.float64)[:, None]
        width = block.shape[2]
        for start in range(0, codeword.shape[1], width):
            part = codeword[:, start : start + width]
            columns = part.shape[1]
            block[0, :, :columns] = part
            block[0, :, columns:] = 0.0
            inputs = self._transform.inverse(*block)[self._slots, :columns]
            np.multiply(inputs, signs, out=product[:, start : start + columns])

    def _fill(self, values: Float, spare: Float) -> None:
        steps = self._steps
        first = self._transform.order + 1
        for begin, end, *longer in steps.levels.tolist():
            result = values[first + begin : first + end]
            for t, count in enumerate(longer):
                if not count:
                    break
                rows = slice(begin, begin + count)
                # mode="clip" lets take() write straight to its target; the rows are in range.
                out = spare[:count] if t else result
                values.take(steps.terms[rows, t], axis=0, out=out, mode="clip")
                out *= steps.coefficients[rows, t, None]
                if t:
                    result[:count] += out

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {
            **vars(self._steps),
            **self._transform.to_arrays(),
            "rows": self._rows,
            "slots": self._slots,
        }

    @classmethod
    def _from_arrays(cls, arrays: Arrays) -> Self:
        transform = KernelTransform.from_arrays(arrays)
        order = transform.order
        workers = stored_indices(arrays, "workers", None)
        rows = stored_indices(arrays, "rows", order)
        slots = stored_indices(arrays, "slots", order)
        width = 2 * max(transform.sizes) - 1
        coefficients = np.asarray(arrays["coefficients"])
        count = len(coefficients)
        steps = SumSteps(
            terms=stored_indices(arrays, "terms", order + 1 + count, columns=width),
            coefficients=coefficients.astype(np.float64),
            levels=stored_indices(arrays, "levels", count + 1, columns=2 + width),
            missing=stored_indices(arrays, "missing", order),
            filled=stored_indices(arrays, "filled", order + 1 + count),
        )
        if not (
            rows.size == workers.size
            and np.array_equal(np.sort(np.append(rows, steps.missing)), np.arange(order))
            and np.unique(slots).size == slots.size
            and coefficients.shape == steps.terms.shape
            and coefficients.dtype.kind == "f"
            and np.isfinite(coefficients).all()
            and steps.filled.size == steps.missing.size
            and _runs_in_order(steps, order)
        ):
            raise InvalidPlan("the arrays of the plan do not fit together: store it again")
        return cls(workers, rows, steps, slots, transform)


def _runs_in_order(steps: SumSteps, order: int) -> bool:
    """Whether the levels cover all steps, and each step uses only what is there by then."""
    count, levels = len(steps.terms), steps.levels
    if not levels.size:
        return count == 0
    begins, ends, longer = levels[:, 0], levels[:, 1], levels[:, 2:]
    sizes = ends - begins
    if begins[0] != 0 or ends[-1] != count or np.any(begins[1:] != ends[:-1]) or sizes.min() < 1:
        return False
    if np.any(longer[:, 0] != sizes) or np.any(np.diff(longer, axis=1) > 0):
        return False
    ready = np.repeat(order + 1 + begins, sizes)
    return bool(np.all(steps.terms.max(axis=1) < ready))
