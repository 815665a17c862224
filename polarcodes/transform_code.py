"""What the codes have in common whose coded blocks are rows of one square transform."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from polarcodes.code import ErasureCode
from polarcodes.errors import InvalidBlocks
from polarcodes.signed_transform import SignedTransform
from polarcodes.syndrome import SyndromeDecoder

Ids = NDArray[np.intp]


class TransformCode(ErasureCode):
    """Coded block i is row ``positions[i]`` of G applied to data at ``inputs`` and zeros elsewhere.

    G is a square transform of order N' >= N; where N' > N its other outputs are punctured: nobody
    computes them, and for the decoders they are answers that never come.

    Parameters
    ----------
    seed : int
        For the record: where the random parts came from.
    transform : G
    inputs : (s,) intp
    positions : (N,) intp
    """

    def __init__(self, seed: int, transform: SignedTransform, inputs: Ids, positions: Ids) -> None:
        whole = positions.size == transform.order
        # A punctured code's buffer has fewer rows than the transform: data come first there.
        slots = inputs if whole else np.arange(inputs.size)
        super().__init__(positions.size, inputs.size, seed, slots)
        self._transform = transform
        self._inputs = inputs
        self._positions = positions
        self._every = whole and np.array_equal(positions, np.arange(positions.size))

    @property
    def inputs(self) -> Ids:
        """Row of G's input that holds data block k, shape (s,): ``slots`` where N = N'."""
        return self._inputs

    @property
    def positions(self) -> Ids:
        """Row of G that worker i answers, shape (N,): 0..N-1 where N = N'."""
        return self._positions

    @cached_property
    def _syndrome(self) -> SyndromeDecoder | None:
        """The syndrome decoder, of orthogonal transforms."""
        if not self._transform.orthogonal:
            return None
        return SyndromeDecoder(self._transform, self._inputs, self._positions)

    def encoded_dtype(
        self, source: DTypeLike, low: float | int, high: float | int
    ) -> np.dtype[Any]:
        """Return the dtype of the coded blocks; only sums of integers stay integers.

        Transforms with integer entries: as :meth:`ErasureCode.encoded_dtype` says. Others: float32
        for bool, 8 and 16 bit integers, float16 and float32, float64 for the rest.
        """
        dtype = np.dtype(source)
        if self._transform.exact or dtype.kind not in "biu" or dtype.itemsize > 8:
            return super().encoded_dtype(source, low, high)
        return np.dtype(np.float32 if dtype.itemsize <= 2 else np.float64)

    def _encode(self, blocks: NDArray[Any], out: NDArray[Any]) -> None:
        take = None if self._every else self._positions
        self._transform.apply(blocks, out, at=self._inputs, take=take)

    def _encode_inplace(self, buffer: NDArray[Any]) -> None:
        if buffer.dtype.kind != "f" and not self._transform.exact:
            raise InvalidBlocks(
                f"this transform needs a float32 or float64 buffer, got {buffer.dtype}"
            )
        if self._every:
            self._transform.apply(buffer, buffer)
        elif self.workers == self._transform.order:
            self._encode(buffer[self.slots], buffer)
        else:
            self._encode(buffer[: self.data_blocks], buffer)

    def _encode_rows(self, blocks: NDArray[Any], workers: Ids) -> NDArray[Any]:
        out = np.empty((workers.size, blocks.shape[1]), blocks.dtype)
        self._transform.apply(blocks, out, at=self._inputs, take=self._positions[workers])
        return out

    def _adjoint(self, answers: NDArray[Any], workers: Ids) -> NDArray[Any]:
        return self._back(answers, workers, 1.0)

    def _back(self, answers: NDArray[Any], workers: Ids, factor: float) -> NDArray[Any]:
        out = np.empty((self.data_blocks, answers.shape[1]), answers.dtype)
        rows = self._positions[workers]
        self._transform.adjoint(answers, out, at=rows, take=self._inputs, factor=factor)
        return out
