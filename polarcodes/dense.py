"""Codes whose generator is a dense matrix, decoded by its pseudo-inverse."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from polarcodes.arrivals import ANSWER_ERROR, TOLERANCE
from polarcodes.checks import worker_indices
from polarcodes.errors import InvalidBlocks, InvalidCode, InvalidPlan
from polarcodes.plan import Arrays, DecodingPlan, stored_indices
from polarcodes.products import column_product
from polarcodes.searched import SearchedCode

Ids = NDArray[np.intp]
Float = NDArray[np.float64]

_MAX_ENTRIES = 1 << 24  # 128 MiB of generator
_RANK_FLOOR = 1e-13  # of squared singular values of Z_S / sqrt(m)


class DensePlan(DecodingPlan):
    """X = Z_S^+ Y: s m multiplications for each column, in float64; O(m s^2) to make, once."""

    method = "dense"

    def __init__(self, workers: Ids, inverse: Float) -> None:
        super().__init__(workers, inverse.shape[0])
        self._inverse = inverse
        self._sorted = np.argsort(workers)  # the same bytes whatever the order of S

    def predicted_error(self, answer_error: float = ANSWER_ERROR) -> float:
        """Return u ||Z_S^+||, as in :class:`DecodingPlan`, exactly."""
        return answer_error * float(np.linalg.norm(self._inverse))

    def _apply(self, answers: NDArray[Any]) -> NDArray[Any]:
        product = np.empty((self.data_blocks, answers.shape[1]), answers.dtype)
        column_product(self._inverse, answers[self._sorted], product)
        return product

    def _arrays(self) -> dict[str, NDArray[Any]]:
        return {"inverse": self._inverse.copy()}

    @classmethod
    def _from_arrays(cls, arrays: Arrays) -> Self:
        workers = stored_indices(arrays, "workers", None)
        inverse = np.asarray(arrays["inverse"])
        if inverse.ndim != 2 or inverse.shape[1] != workers.size or inverse.dtype.kind != "f":
            raise InvalidPlan(f"inverse must have {workers.size} columns, got {inverse.shape}")
        if not np.isfinite(inverse).all():
            raise InvalidPlan("inverse must hold finite numbers")
        return cls(workers, inverse.astype(np.float64))


class DenseCode(SearchedCode):
    """Base of the codes given by an N x s matrix. Encoding costs N s multiplications a column.

    Decodable when the singular values of the received rows Z_S keep the predicted relative error of
    the product, u sqrt(sum sigma_i^-2 mean ||z_i||^2 / s), within the tolerance: O(m s^2) to ask.
    """

    def _assemble(self, seed: int, generator: Float) -> None:
        workers, blocks = generator.shape
        super().__init__(workers, blocks, seed, np.arange(blocks))
        self._generator = generator

    @staticmethod
    def _check_size(name: str, workers: int, data_blocks: int) -> None:
        if workers * data_blocks > _MAX_ENTRIES:
            raise InvalidCode(
                f"workers x data_blocks must be at most {_MAX_ENTRIES} for the code {name!r}, got "
                f"{workers} x {data_blocks}: its generator is a dense matrix; take 'hadamard'"
            )

    @property
    def row_weight(self) -> int:
        """The largest sum of |coefficients| over a generator row, rounded up."""
        return math.ceil(float(np.abs(self._generator).sum(axis=1).max()))

    def encoded_dtype(
        self, source: DTypeLike, low: float | int, high: float | int
    ) -> np.dtype[Any]:
        """Return float32 for bool, 8 and 16 bit integers and small floats, float64 otherwise."""
        dtype = np.dtype(source)
        if dtype.kind not in "biu":
            return super().encoded_dtype(source, low, high)
        if dtype.itemsize > 8:
            raise InvalidBlocks(f"source must be real numbers of at most 64 bits, got {dtype}")
        return np.dtype(np.float32 if dtype.itemsize <= 2 else np.float64)

    def plan(
        self,
        S: Iterable[int],
        *,
        answer_error: float = ANSWER_ERROR,
        tolerance: float = TOLERANCE,
    ) -> DensePlan:
        """Return the pseudo-inverse of the received rows; raises NotDecodable."""
        workers = worker_indices(S, self.workers)
        enough = workers.size >= self.data_blocks
        if not enough or not self._decodes(workers, answer_error, tolerance):
            raise self._refusal(workers, answer_error, tolerance)
        basis, triangle = np.linalg.qr(self._generator[np.sort(workers)])
        return DensePlan(workers, np.linalg.solve(triangle, basis.T))

    def _decodes(self, workers: Ids, answer_error: float, tolerance: float) -> bool:
        rows = self._generator[workers] / math.sqrt(self._row_energy(workers) / self.data_blocks)
        squares = np.linalg.eigvalsh(rows.T @ rows)
        if squares[0] <= _RANK_FLOOR:
            return False
        return answer_error * math.sqrt(np.sum(1.0 / squares) / workers.size) <= tolerance

    def _row_energy(self, workers: Ids) -> float:
        return float(np.sum(self._generator[workers] ** 2))

    def _encode(self, blocks: NDArray[Any], out: NDArray[Any]) -> None:
        if out.dtype.kind != "f":
            raise InvalidBlocks(f"this code needs a float32 or float64 buffer, got {out.dtype}")
        column_product(self._generator, blocks, out)

    def _encode_inplace(self, buffer: NDArray[Any]) -> None:
        self._encode(buffer[: self.data_blocks], buffer)

    def _encode_rows(self, blocks: NDArray[Any], workers: Ids) -> NDArray[Any]:
        out = np.empty((workers.size, blocks.shape[1]), blocks.dtype)
        column_product(self._generator[workers], blocks, out)
        return out

    def _adjoint(self, answers: NDArray[Any], workers: Ids) -> NDArray[Any]:
        out = np.empty((self.data_blocks, answers.shape[1]), answers.dtype)
        column_product(self._generator[workers].T, answers, out)
        return out
