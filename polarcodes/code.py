"""What every erasure code over the reals offers, whatever its construction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from polarcodes.arrivals import ANSWER_ERROR, TOLERANCE, Arrivals
from polarcodes.checks import (
    answer_rows,
    data_rows,
    require_finite_answers,
    value_range,
    worker_indices,
)
from polarcodes.errors import InvalidAnswers, InvalidBlocks
from polarcodes.estimate import Estimate
from polarcodes.operator import GeneratorRows
from polarcodes.plan import DecodingPlan
from polarcodes.residual import Residual, compare


class ErasureCode(ABC):
    """N coded blocks from s data blocks, so that many sets S of N answers determine the product.

    Encoding is linear over blocks: row i of the generator (N x s) says how coded block i adds up
    the data blocks, and worker i's answer adds up the data blocks' answers in the same way. Codes
    are immutable; all randomness comes from ``seed`` and is stored in the manifest.

    Shapes: U (s, L) data, Y (m, L) answers in the order of S, X (s, L) decoded; L is whatever a
    block holds (rows x columns of A for encoding, rows x k of the answer for decoding).
    """

    name: ClassVar[str]
    adds_blocks: bool = True
    """False where every coded block is one data block, which then keeps its dtype."""

    def __init__(self, workers: int, data_blocks: int, seed: int, slots: NDArray[np.intp]) -> None:
        self._workers = workers
        self._data_blocks = data_blocks
        self._seed = seed
        self._slots = np.array(slots, dtype=np.intp)
        self._slots.flags.writeable = False

    @property
    def workers(self) -> int:
        """N, the number of coded blocks."""
        return self._workers

    @property
    def data_blocks(self) -> int:
        """s, the number of data blocks."""
        return self._data_blocks

    N = workers
    s = data_blocks

    @property
    def seed(self) -> int:
        """Where the random parts of the code came from."""
        return self._seed

    @property
    def slots(self) -> NDArray[np.intp]:
        """Row of the (N, L) transform buffer that holds data block k, shape (s,); read only."""
        return self._slots

    # Encoding

    def encode(self, U: Any) -> NDArray[Any]:
        """Return the coded blocks of U, shape (s, L) -> (N, L).

        Integers and bool come out exact in the narrowest of int16, int32 and int64 that holds every
        sum of the actual values (float64 where none does), float16 as float32, float32 and float64
        as they are. Any strides and byte order; U is never changed. Raises
        :class:`~polarcodes.errors.InvalidBlocks` for a wrong shape or type, NaN or infinity.
        """
        blocks = data_rows(U, self.data_blocks)
        out = np.empty(
            (self.workers, blocks.shape[1]), self.encoded_dtype(blocks.dtype, *value_range(blocks))
        )
        self._encode(blocks, out)
        return out

    def encode_inplace(self, buffer: NDArray[Any]) -> None:
        """Overwrite a buffer that holds data block k at row ``slots[k]`` with the codeword.

        ``buffer`` is C-contiguous and writable, shape (N, L), of the dtype that
        :meth:`encoded_dtype` gives, zero at all other rows. Integer buffers are exact. Scratch:
        about 1 MiB (at least 32 N values), whatever L is.
        """
        if buffer.ndim != 2 or buffer.shape[0] != self.workers:
            raise InvalidBlocks(f"buffer must have shape ({self.workers}, L), got {buffer.shape}")
        if not (buffer.flags.c_contiguous and buffer.flags.writeable and buffer.dtype.isnative):
            raise InvalidBlocks("buffer must be C-contiguous, writable and in native byte order")
        if buffer.dtype.name not in self._buffer_dtypes():
            raise InvalidBlocks(
                f"buffer must be of the dtype that encoded_dtype() gives, got {buffer.dtype}"
            )
        self._encode_inplace(buffer)

    def encoded_dtype(
        self, source: DTypeLike, low: float | int, high: float | int
    ) -> np.dtype[Any]:
        """Return the dtype that holds every coded sum of values of ``source`` within low..high.

        Integers: int16, int32 or int64, exact; float64, rounded, where s max|a| exceeds int64.
        float16 widens to float32; float32 to float64 where a sum could overflow. A code that adds
        no blocks keeps integers as they are, bool as uint8.
        """
        dtype = np.dtype(source)
        if dtype.kind not in "biuf" or dtype.itemsize > 8:
            raise InvalidBlocks(f"source must be real numbers of at most 64 bits, got {dtype}")
        if dtype.kind == "f":
            largest = max(abs(float(low)), abs(float(high)))
            if not (np.isfinite(low) and np.isfinite(high)):
                raise InvalidBlocks(f"low and high must be finite, got {low} and {high}")
            total = largest * self.row_weight
            if dtype.itemsize <= 4 and total <= float(np.finfo(np.float32).max):
                return np.dtype(np.float32)
            if not np.isfinite(total):
                raise InvalidBlocks(
                    f"sums of {self.row_weight} values up to {largest:g} overflow float64: "
                    "scale the data down"
                )
            return np.dtype(np.float64)
        if not self.adds_blocks:
            return np.dtype(np.uint8) if dtype.kind == "b" else dtype.newbyteorder("=")
        bound = max(abs(int(low)), abs(int(high))) * self.row_weight
        for candidate in (np.int16, np.int32, np.int64):
            if bound <= np.iinfo(candidate).max:
                return np.dtype(candidate)
        return np.dtype(np.float64)

    def _buffer_dtypes(self) -> tuple[str, ...]:
        sums = ("int16", "int32", "int64", "float32", "float64")
        return sums if self.adds_blocks else (*sums, "int8", "uint8", "uint16", "uint32", "uint64")

    def rows(self, S: Iterable[int]) -> NDArray[np.float64]:
        """Return the generator rows of the workers in S, shape (m, s)."""
        return self.operator(S).to_dense()

    def generator(self) -> NDArray[np.float64]:
        """Return the whole dense generator, shape (N, s): an oracle for tests and small N."""
        return self.rows(range(self.workers))

    def operator(self, S: Iterable[int]) -> GeneratorRows:
        """Return the generator rows of S as an operator that applies them without a matrix."""
        return GeneratorRows(self, worker_indices(S, self.workers))

    # Decoding

    def estimate(self, S: Iterable[int], Y: Any) -> Estimate:
        """Estimate the product from the answers of any set S, Y shape (m, L).

        Raises :class:`~polarcodes.errors.InvalidWorkers` and
        :class:`~polarcodes.errors.InvalidAnswers`. Error and bar assume that S was not chosen by
        looking at the code's signs or at the data.
        """
        workers, answers = self._checked(S, Y)
        return self._estimate(workers, answers)

    def residual(self, S: Iterable[int], Y: Any, X: Any) -> Residual:
        """Check the decoded product X, shape (s, L), against all the answers it came from.

        Re-encodes X in float64 and compares it with Y at S.
        """
        workers, answers = self._checked(S, Y)
        product = data_rows(X, self.data_blocks)
        if product.shape[1] != answers.shape[1]:
            raise InvalidAnswers(
                f"X must have {answers.shape[1]} columns like Y, got {product.shape[1]}"
            )
        expected = GeneratorRows(self, workers).apply(product.astype(answers.dtype, copy=False))
        return compare(answers, expected, workers, self.data_blocks)

    def _checked(self, S: Iterable[int], Y: Any) -> tuple[NDArray[np.intp], NDArray[Any]]:
        workers = worker_indices(S, self.workers)
        answers = answer_rows(Y, workers)
        require_finite_answers(answers, workers)
        return workers, answers

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ErasureCode):
            return NotImplemented
        return self.to_manifest() == other.to_manifest()

    def __hash__(self) -> int:
        return hash((self.name, self.workers, self.data_blocks, self.seed))

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(workers={self.workers}, data_blocks={self.data_blocks}, "
            f"seed={self.seed})"
        )

    # What a code defines

    @property
    @abstractmethod
    def row_weight(self) -> int:
        """The largest sum of |coefficients| over a generator row: how much values may grow."""

    @abstractmethod
    def arrivals(
        self, *, answer_error: float = ANSWER_ERROR, tolerance: float = TOLERANCE
    ) -> Arrivals:
        """Return an empty arrivals state."""

    @abstractmethod
    def decodable(
        self,
        S: Iterable[int],
        *,
        answer_error: float = ANSWER_ERROR,
        tolerance: float = TOLERANCE,
    ) -> bool:
        """Return whether the answers of S determine every data block, to the tolerance."""

    @abstractmethod
    def plan(
        self,
        S: Iterable[int],
        *,
        answer_error: float = ANSWER_ERROR,
        tolerance: float = TOLERANCE,
    ) -> DecodingPlan:
        """Return the plan that decodes the answers of S.

        Raises :class:`~polarcodes.errors.NotDecodable`.
        """

    @abstractmethod
    def predicted_error(self, m: int) -> float:
        """Return the rms relative error of the estimate from m answers: inf at m = 0, 0 at N."""

    @abstractmethod
    def to_manifest(self) -> dict[str, Any]:
        """Return the code as pure JSON, every random part written out."""

    @classmethod
    @abstractmethod
    def from_manifest(cls, manifest: dict[str, Any]) -> ErasureCode:
        """Rebuild the code; raises :class:`~polarcodes.errors.InvalidManifest`."""

    @abstractmethod
    def _encode(self, blocks: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the codeword of ``blocks`` (s, L) to ``out`` (N, L), computed in out's dtype."""

    @abstractmethod
    def _encode_inplace(self, buffer: NDArray[Any]) -> None:
        """Overwrite a checked buffer with the codeword."""

    @abstractmethod
    def _encode_rows(self, blocks: NDArray[Any], workers: NDArray[np.intp]) -> NDArray[Any]:
        """Return rows ``workers`` of the codeword of float ``blocks``, shape (m, L)."""

    @abstractmethod
    def _adjoint(self, answers: NDArray[Any], workers: NDArray[np.intp]) -> NDArray[Any]:
        """Return the generator rows of ``workers``, transposed, times float ``answers``: (s, L)."""

    @abstractmethod
    def _estimate(self, workers: NDArray[np.intp], answers: NDArray[Any]) -> Estimate:
        """Estimate from checked answers."""
