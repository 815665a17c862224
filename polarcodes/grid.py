"""Both factors of a matrix product encoded: the tensor code Z^A (x) Z^B over a grid of workers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from polarcodes.arrivals import ANSWER_ERROR, TOLERANCE
from polarcodes.checks import integer, worker_indices
from polarcodes.code import ErasureCode
from polarcodes.errors import InvalidBlocks, InvalidCode, InvalidManifest
from polarcodes.estimate import Estimate, mean_square
from polarcodes.grid_bar import Sampling, measured_bar, sampling
from polarcodes.grid_peeling import LINE_SHARE, GridArrivals, complete_lines
from polarcodes.grid_plan import TensorPlan
from polarcodes.manifest import Fields
from polarcodes.searched import SearchedCode

Ids = NDArray[np.intp]

_DENSE_WORKERS = 1024
_RANK_FLOOR = 1e-11  # of squared singular values over the largest

APPROXIMATE = ("berrut",)
"""Codes whose decoder is not exact: nothing can be re-encoded from what it gives."""


class GridCode(SearchedCode):
    """A is cut by rows and coded by ``left``, B cut by columns and coded by ``right``.

    Worker (i, j) is number i N2 + j and answers A~_i B~_j = sum_kl Z^A_ik Z^B_jl A_k B_l, so the
    data block of index k s2 + l is A_k B_l and the generator is the Kronecker product of the two
    (N = N1 N2, s = s1 s2). Rows and columns of the grid are codewords of the right and of the left
    code, and are decoded alternately, with whichever decoder a component code takes, until nothing
    moves. If any t1 and any t2 missing answers of a line are harmless to the left and to the right
    code, any (t1 + 1)(t2 + 1) - 1 missing workers are harmless.

    The estimate is T_kl = (1/m) sum over S of Z^A_ik Z^B_jl y_ij where both codes come from
    randomised Hadamard transforms; else least squares. Encoding L columns costs s1 encodings of the
    right code and N2 of the left one; arrivals cost two updates of a component's arrivals.

    Parameters
    ----------
    left, right : ErasureCode
        The codes of the rows of A and of the columns of B; any but ``berrut``, which decodes
        approximately.

    References
    ----------
    Bartan and Pilanci, arXiv 2309.00682, appendix; product codes for matrix products: Lee, Suh and
    Ramchandran, "High-Dimensional Coded Matrix Multiplication" (ISIT 2017).

    >>> from polarcodes.registry import make_code
    >>> line = make_code("hadamard", workers=4, data_blocks=3)
    >>> code = GridCode(line, line)
    >>> code.workers, code.data_blocks
    (16, 9)
    >>> code.decodable(set(range(16)) - {0, 1, 4}), code.decodable(set(range(16)) - {0, 1, 4, 5})
    (True, False)
    """

    name = "grid"

    def __init__(self, left: ErasureCode, right: ErasureCode) -> None:
        for side, code in (("left", left), ("right", right)):
            if isinstance(code, GridCode) or code.name in APPROXIMATE:
                raise InvalidCode(
                    f"{side} must be a code of one line that decodes exactly, got {code.name!r}"
                )
        slots = np.add.outer(right.workers * left.slots, right.slots).ravel()
        super().__init__(
            left.workers * right.workers, left.data_blocks * right.data_blocks, left.seed, slots
        )
        self._left = left
        self._right = right
        self.adds_blocks = left.adds_blocks or right.adds_blocks

    @property
    def left(self) -> ErasureCode:
        """The code of the rows of A: N1 and s1."""
        return self._left

    @property
    def right(self) -> ErasureCode:
        """The code of the columns of B: N2 and s2."""
        return self._right

    @property
    def grid(self) -> tuple[int, int]:
        """(N1, N2)."""
        return self._left.workers, self._right.workers

    @property
    def data_grid(self) -> tuple[int, int]:
        """(s1, s2)."""
        return self._left.data_blocks, self._right.data_blocks

    @property
    def row_weight(self) -> int:
        """The product of the two row weights."""
        return self._left.row_weight * self._right.row_weight

    def encoded_dtype(
        self, source: DTypeLike, low: float | int, high: float | int
    ) -> np.dtype[Any]:
        """Return an exact integer dtype where both codes have one, else float32 or float64."""
        dtype = np.dtype(source)
        if dtype.kind in "biu" and not (_exact(self._left) and _exact(self._right)):
            if dtype.itemsize > 8:
                raise InvalidBlocks(f"source must be real numbers of at most 64 bits, got {dtype}")
            return np.dtype(np.float32 if dtype.itemsize <= 2 else np.float64)
        once = self._right.encoded_dtype(dtype, low, high)
        if not self._right.adds_blocks:
            return self._left.encoded_dtype(once, low, high)
        bound = max(abs(low), abs(high)) * self._right.row_weight
        return self._left.encoded_dtype(once, -bound, bound)

    def arrivals(
        self, *, answer_error: float = ANSWER_ERROR, tolerance: float = TOLERANCE
    ) -> GridArrivals:
        """Return an empty arrivals state."""
        return GridArrivals(self._left, self._right, answer_error, tolerance)

    def plan(
        self,
        S: Iterable[int],
        *,
        answer_error: float = ANSWER_ERROR,
        tolerance: float = TOLERANCE,
    ) -> TensorPlan:
        """Return the lines to complete, in order, and the decoders; raises NotDecodable."""
        workers = worker_indices(S, self.workers)
        flags = self._flags(workers)
        lines = complete_lines(self._left, self._right, flags, answer_error, tolerance)
        if lines is None:
            raise self._refusal(workers, answer_error, tolerance)
        rule = {"answer_error": answer_error, "tolerance": LINE_SHARE * tolerance}
        return TensorPlan.make(workers, self._left, self._right, lines, rule)

    def predicted_error(self, m: int) -> float:
        """Return sqrt(c (N' - m) / (m (N' - 1))) for T (`polarcodes.grid_bar`); else sqrt(1 - m/s).

        For codes of +-1 entries c = s - 1, as for one code of N workers and s data blocks.
        """
        if self.sampling is None:
            return super().predicted_error(m)
        arrived = integer("m", m, 0, self.workers)
        if arrived in (0, self.workers):
            return 0.0 if arrived else math.inf
        return self.sampling.error(arrived)

    @cached_property
    def sampling(self) -> Sampling | None:
        """What T's error depends on; None where the codes are not both orthogonal transforms."""
        return sampling(self._left, self._right)

    def nullity(self, workers: Ids) -> int:
        """Return s - rank(Z_S) from the smaller Gram matrix, O(N^3); s beyond 1,024 workers."""
        if self.workers > _DENSE_WORKERS or workers.size == 0:
            return self.data_blocks
        rows = self.rows(workers)
        small = rows if rows.shape[0] <= rows.shape[1] else rows.T
        squares = np.linalg.eigvalsh(small @ small.T)
        return self.data_blocks - int(np.sum(squares > _RANK_FLOOR * squares[-1]))

    def to_manifest(self) -> dict[str, Any]:
        """Return both codes as pure JSON."""
        return {
            "name": self.name,
            "version": 1,
            "workers": self.workers,
            "data_blocks": self.data_blocks,
            "left": self._left.to_manifest(),
            "right": self._right.to_manifest(),
        }

    @classmethod
    def from_manifest(cls, manifest: dict[str, Any]) -> GridCode:
        """Rebuild both codes; raises InvalidManifest."""
        from polarcodes.registry import code_from_manifest  # it knows this class, too

        fields = Fields(manifest, cls.name, ("workers", "data_blocks", "left", "right"))
        left, right = (code_from_manifest(manifest[side]) for side in ("left", "right"))
        with fields.as_invalid_manifest():
            code = cls(left, right)
        for name, value in (("workers", code.workers), ("data_blocks", code.data_blocks)):
            if type(manifest[name]) is not int or manifest[name] != value:
                raise InvalidManifest(
                    f"{name} must be {value}, the product of those of the two codes, got "
                    f"{manifest[name]!r}"
                )
        return code

    def _buffer_dtypes(self) -> tuple[str, ...]:
        left, right = self._left._buffer_dtypes(), self._right._buffer_dtypes()
        return tuple(name for name in left if name in right)

    def _flags(self, workers: Ids) -> NDArray[np.bool_]:
        flags = np.zeros(self.workers, bool)
        flags[workers] = True
        return flags.reshape(self.grid)

    def _decodes(self, workers: Ids, answer_error: float, tolerance: float) -> bool:
        flags = self._flags(workers)
        return complete_lines(self._left, self._right, flags, answer_error, tolerance) is not None

    def _row_energy(self, workers: Ids) -> float:
        first, second = (np.sum(code.generator() ** 2, axis=1) for code in self._components)
        return float(np.outer(first, second).ravel()[workers].sum())

    @property
    def _components(self) -> tuple[ErasureCode, ErasureCode]:
        return self._left, self._right

    def _encode(self, blocks: NDArray[Any], out: NDArray[Any]) -> None:
        (n1, n2), (s1, s2) = self.grid, self.data_grid
        width = blocks.shape[1]
        half = np.empty((s1, n2, width), out.dtype)
        for row, part in enumerate(blocks.reshape(s1, s2, width)):
            self._right._encode(part, half[row])
        self._left._encode(half.reshape(s1, n2 * width), out.reshape(n1, n2 * width))

    def _encode_inplace(self, buffer: NDArray[Any]) -> None:
        n1, n2 = self.grid
        width = buffer.shape[1]
        lines = buffer.reshape(n1, n2, width)
        for row in self._left.slots.tolist():
            self._right._encode_inplace(lines[row])
        self._left._encode_inplace(buffer.reshape(n1, n2 * width))

    def _encode_rows(self, blocks: NDArray[Any], workers: Ids) -> NDArray[Any]:
        whole = np.empty((self.workers, blocks.shape[1]), blocks.dtype)
        self._encode(blocks, whole)
        return whole[workers]

    def _adjoint(self, answers: NDArray[Any], workers: Ids) -> NDArray[Any]:
        (n1, n2), (s1, s2) = self.grid, self.data_grid
        width = answers.shape[1]
        cells = np.zeros((self.workers, width), answers.dtype)
        cells[workers] = answers
        half = self._left._adjoint(cells.reshape(n1, n2 * width), np.arange(n1))
        rows = half.reshape(s1, n2, width)
        whole = [self._right._adjoint(row, np.arange(n2)) for row in rows]
        return np.asarray(np.stack(whole).reshape(s1 * s2, width))

    def _estimate(self, workers: Ids, answers: NDArray[Any]) -> Estimate:
        """T of both transforms, unbiased over their signs; least squares for other codes."""
        arrived = workers.size
        if self.sampling is None or self.workers == arrived != self.sampling.order:
            return super()._estimate(workers, answers)
        relative = self.predicted_error(arrived)
        factor = answers.dtype.type(1.0 / max(arrived, 1))
        bar = measured_bar(self, self.sampling, workers)
        return Estimate(
            value=self._adjoint(answers, workers) * factor,
            relative_error=relative,
            relative_error_upper=max(relative, bar),
            absolute_error=relative * math.sqrt(mean_square(answers)) if arrived else math.inf,
            method="sketch",
        )


def _exact(code: ErasureCode) -> bool:
    """Whether integers stay integers."""
    return code.encoded_dtype("uint8", 0, 255).kind in "iu"
