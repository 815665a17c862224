"""The decoding plan of the syndrome decoder: frozen rows give the missing answers, then invert."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from polarcodes.arrivals import ANSWER_ERROR
from polarcodes.errors import InvalidPlan
from polarcodes.orthogonal import stored_transform
from polarcodes.parity import ParityCheck, decoding_error
from polarcodes.plan import Arrays, DecodingPlan, stored_indices

_VALUES = 1 << 14  # in a chunk: 128 KiB of float64, twice

Ids = NDArray[np.intp]
Float = NDArray[np.float64]


class SyndromePlan(DecodingPlan):
    """y_E = -P_E^+ (G^T y)_F with zeros at E, then X = (G^T y)_data / N with y_E filled in.

    Cost for each column: two transforms and e f multiplications, in float64 whatever the answers
    are (at the threshold a condition number of thousands would eat float32 up). Columns are
    taken in chunks of one fixed width (64, more below N = 256), padded with zeros, so that BLAS
    adds up in the same order for every column: the same bytes for any chunking. Memory besides Y
    and X: two chunks of N rows. Making the plan costs O(e^2 f), once.
    """

    method = "syndrome"

    def __init__(
        self, workers: Ids, rows: Ids, missing: Ids, check: ParityCheck, solution: Float
    ) -> None:
        super().__init__(workers, check.slots.size)
        self._rows = rows  # of the transform, in the order of the workers
        self._missing = missing  # rows, ascending
        self._check = check
        self._solution = solution  # (e, f): -P_E^+ for P scaled as G is

    @classmethod
    def make(cls, workers: Ids, rows: Ids, check: ParityCheck) -> Self:
        """Factorise P_E, which must have full column rank, for the answers of ``rows``."""
        erased = np.ones(check.rounds.order, bool)
        erased[rows] = False
        missing = np.flatnonzero(erased)
        basis, triangle = np.linalg.qr(check.columns(missing))
        solution = -np.linalg.solve(triangle, basis.T) / np.sqrt(check.rounds.energy)
        return cls(workers, rows, missing, check, solution)

    def predicted_error(self, answer_error: float = ANSWER_ERROR) -> float:
        """Return the rms relative error of the product when each answer has ``answer_error``."""
        rounds = self._check.rounds
        gain = rounds.energy * float(np.sum(self._solution**2))
        return decoding_error(rounds.order, self._missing.size, gain, answer_error)

    def _apply(self, answers: NDArray[Any]) -> NDArray[Any]:
        check, rounds = self._check, self._check.rounds
        order, total = rounds.order, answers.shape[1]
        width = min(max(_VALUES // order, 64), 1024)
        product = np.empty((self.data_blocks, total), answers.dtype)
        signs = rounds.input_signs.astype(np.float64)[:, None]
        frozen_signs, data_signs = signs[check.frozen], signs[check.slots] / rounds.energy
        block, spare = np.empty((2, order, width))
        filled = np.zeros((self._missing.size, width))
        for start in range(0, total, width):
            part = answers[:, start : start + width]
            columns = part.shape[1]
            if self._missing.size:
                self._place(block, part, 0.0)
                syndrome = rounds.backward(block, spare)[check.frozen]
                syndrome *= frozen_signs
                np.matmul(self._solution, syndrome, out=filled)
            self._place(block, part, filled)
            inputs = rounds.backward(block, spare)[check.slots, :columns]
            np.multiply(inputs, data_signs, out=product[:, start : start + columns])
        return product

    def _place(self, block: Float, part: NDArray[Any], filled: Float | float) -> None:
        block[self._rows, : part.shape[1]] = part
        block[self._rows, part.shape[1] :] = 0.0
        block[self._missing] = filled

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {
            **self._check.rounds.to_arrays(),
            "rows": self._rows,
            "slots": self._check.slots,
            "solution": self._solution,
        }

    @classmethod
    def _from_arrays(cls, arrays: Arrays) -> Self:
        rounds = stored_transform(arrays)
        order = rounds.order
        workers = stored_indices(arrays, "workers", None)
        rows = stored_indices(arrays, "rows", order)
        slots = stored_indices(arrays, "slots", order)
        solution = np.asarray(arrays["solution"])
        missing = np.setdiff1d(np.arange(order), rows)
        if (
            rows.shape != workers.shape
            or missing.size + rows.size != order
            or np.unique(slots).size != slots.size
            or solution.shape != (missing.size, order - slots.size)
            or solution.dtype.kind != "f"
            or not np.isfinite(solution).all()
        ):
            raise InvalidPlan("the arrays of the plan do not fit together: store it again")
        check = ParityCheck(rounds, slots)
        return cls(workers, rows, missing, check, solution.astype(np.float64))
