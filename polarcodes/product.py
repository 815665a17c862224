"""Two-dimensional product codes: a grid of workers with parity in every row and every column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from polarcodes.arrivals import ANSWER_ERROR, TOLERANCE
from polarcodes.checks import integer, worker_indices
from polarcodes.errors import InvalidBlocks, InvalidCode
from polarcodes.manifest import Fields
from polarcodes.product_plan import GridPlan, fill_grid
from polarcodes.randomness import words
from polarcodes.searched import SearchedCode

Ids = NDArray[np.intp]
Float = NDArray[np.float64]
Pair = tuple[int, int]


class ProductCode(SearchedCode):
    """Workers form an n1 x n2 grid, data blocks its s1 x s2 corner; lines are codewords.

    Worker (r, c) is number r n2 + c and its block sum_ab G1[r, a] G2[c, b] U_(a, b), with G1 and G2
    systematic: the identity above one row of ones, or above random rows where a line has more
    than one parity. Peeling: a line with at most n_i - s_i answers missing is completed, which may
    complete others. With one parity each any three missing answers are harmless and four at the
    corners of a rectangle are not. Integers stay exact with one parity each. Decoding costs at
    most s_i multiplications per missing answer. The tolerance is not looked at.

    Parameters
    ----------
    workers, data_blocks, seed : int
        N = n1 n2, s = s1 s2, and where more than one parity row comes from.
    grid, data_grid : pairs of int, optional
        (n1, n2) and (s1, s2). By default the pair with the most parity in the weaker direction,
        and among these the squarest.

    References
    ----------
    Lee, Suh and Ramchandran, "High-Dimensional Coded Matrix Multiplication" (ISIT 2017); product
    codes: Elias, "Error-Free Coding" (1954).

    >>> code = ProductCode(9, 4)
    >>> code.grid, code.data_grid
    ((3, 3), (2, 2))
    >>> code.decodable([0, 2, 4, 5, 7, 8]), code.decodable([1, 2, 4, 5, 6, 7, 8])
    (True, True)
    """

    name = "product"

    def __init__(
        self,
        workers: int,
        data_blocks: int,
        seed: int = 0,
        *,
        grid: Sequence[int] | None = None,
        data_grid: Sequence[int] | None = None,
    ) -> None:
        count = integer("workers", workers, 1, 1 << 16)
        blocks = integer("data_blocks", data_blocks, 1, count)
        seed = integer("seed", seed, 0, None)
        self._grid, self._data_grid = _grids(count, blocks, grid, data_grid)
        (n1, n2), (s1, s2) = self._grid, self._data_grid
        slots = np.add.outer(n2 * np.arange(s1), np.arange(s2)).ravel()
        super().__init__(count, blocks, seed, slots)
        self._lines = _systematic(n1, s1, seed, 0), _systematic(n2, s2, seed, 1)

    @property
    def grid(self) -> Pair:
        """(n1, n2): rows and columns of workers."""
        return self._grid

    @property
    def data_grid(self) -> Pair:
        """(s1, s2): rows and columns of data blocks."""
        return self._data_grid

    @property
    def row_weight(self) -> int:
        """The largest sum of |coefficients| over a generator row, rounded up."""
        first, second = (float(np.abs(line).sum(axis=1).max()) for line in self._lines)
        return int(np.ceil(first * second - 1e-9))

    def encoded_dtype(
        self, source: DTypeLike, low: float | int, high: float | int
    ) -> np.dtype[Any]:
        """Return an exact integer dtype with one parity each, else float32 or float64."""
        dtype = np.dtype(source)
        if self._exact or dtype.kind not in "biu" or dtype.itemsize > 8:
            return super().encoded_dtype(source, low, high)
        return np.dtype(np.float32 if dtype.itemsize <= 2 else np.float64)

    def plan(
        self,
        S: Iterable[int],
        *,
        answer_error: float = ANSWER_ERROR,
        tolerance: float = TOLERANCE,
    ) -> GridPlan:
        """Return the lines to complete, in order; raises NotDecodable."""
        workers = worker_indices(S, self.workers)
        steps = fill_grid(self._lines, self._known(workers))
        if steps is None:
            raise self._refusal(workers, answer_error, tolerance)
        return GridPlan(workers, self.workers, self.slots, steps)

    def to_manifest(self) -> dict[str, Any]:
        """Return the code as pure JSON: the parity rows written out."""
        (_, _), (s1, s2) = self._grid, self._data_grid
        return {
            "name": self.name,
            "version": 1,
            "workers": self.workers,
            "data_blocks": self.data_blocks,
            "seed": self.seed,
            "grid": list(self._grid),
            "data_grid": list(self._data_grid),
            "column_parity": self._lines[0][s1:].tolist(),
            "row_parity": self._lines[1][s2:].tolist(),
        }

    @classmethod
    def from_manifest(cls, manifest: dict[str, Any]) -> ProductCode:
        """Rebuild the code from its explicit parity rows; raises InvalidManifest."""
        explicit = ("grid", "data_grid", "column_parity", "row_parity")
        fields = Fields(manifest, cls.name, ("workers", "data_blocks", "seed", *explicit))
        with fields.as_invalid_manifest():
            for name in ("grid", "data_grid"):
                if manifest[name] is None:
                    raise InvalidCode(f"{name} must be two integers, got None")
            code = cls(
                manifest["workers"],
                manifest["data_blocks"],
                manifest["seed"],
                grid=manifest["grid"],
                data_grid=manifest["data_grid"],
            )
        (n1, n2), (s1, s2) = code._grid, code._data_grid
        code._lines = (
            np.vstack([np.eye(s1), fields.numbers("column_parity", (n1 - s1, s1))]),
            np.vstack([np.eye(s2), fields.numbers("row_parity", (n2 - s2, s2))]),
        )
        return code

    @property
    def _exact(self) -> bool:
        return all(bool(np.isin(line, (0.0, 1.0)).all()) for line in self._lines)

    def _known(self, workers: Ids) -> NDArray[np.bool_]:
        known = np.zeros(self.workers, bool)
        known[workers] = True
        return known.reshape(self._grid)

    def _decodes(self, workers: Ids, answer_error: float, tolerance: float) -> bool:
        return fill_grid(self._lines, self._known(workers), only_ask=True) is not None

    def _row_energy(self, workers: Ids) -> float:
        first, second = (np.sum(line**2, axis=1) for line in self._lines)
        return float(np.outer(first, second).ravel()[workers].sum())

    def _encode(self, blocks: NDArray[Any], out: NDArray[Any]) -> None:
        out[self.slots] = blocks
        self._encode_inplace(out)

    def _encode_inplace(self, buffer: NDArray[Any]) -> None:
        if buffer.dtype.kind != "f" and not self._exact:
            raise InvalidBlocks(f"this code needs a float32 or float64 buffer, got {buffer.dtype}")
        (n1, n2), (s1, s2) = self._grid, self._data_grid
        cells = buffer.reshape(n1, n2, buffer.shape[1])
        for row in range(s1):
            _parity(self._lines[1], cells[row, :s2], cells[row, s2:])
        for column in range(n2):
            _parity(self._lines[0], cells[:s1, column], cells[s1:, column])

    def _encode_rows(self, blocks: NDArray[Any], workers: Ids) -> NDArray[Any]:
        whole = np.empty((self.workers, blocks.shape[1]), blocks.dtype)
        self._encode(blocks, whole)
        return whole[workers]

    def _adjoint(self, answers: NDArray[Any], workers: Ids) -> NDArray[Any]:
        cells = np.zeros((self.workers, answers.shape[1]))
        cells[workers] = answers
        first, second = self._lines
        inner = np.tensordot(first.T, cells.reshape(*self._grid, -1), 1)
        result = np.einsum("acl,cb->abl", inner, second)
        return np.asarray(result.reshape(self.data_blocks, -1).astype(answers.dtype))


def _parity(line: Float, data: NDArray[Any], parity: NDArray[Any]) -> None:
    """Fill the parity cells of one line, in the dtype of the buffer and always in one order."""
    size = line.shape[1]
    for target, coefficients in zip(parity, line[size:], strict=True):
        target[...] = 0
        for value, coefficient in zip(data, coefficients.tolist(), strict=True):
            target += value if coefficient == 1.0 else value * value.dtype.type(coefficient)


def _systematic(length: int, size: int, seed: int, stream: int) -> Float:
    """Return the identity above one row of ones or above random rows of variance one."""
    parities = length - size
    if parities == 1:
        return np.vstack([np.eye(size), np.ones((1, size))])
    mantissas = words(parities * size, seed, stream) >> np.uint64(11)
    units = mantissas.astype(np.float64) * 2.0**-53 - 0.5
    return np.vstack([np.eye(size), np.sqrt(12.0) * units.reshape(parities, size)])


def _grids(
    workers: int,
    data_blocks: int,
    grid: Sequence[int] | None,
    data_grid: Sequence[int] | None,
) -> tuple[Pair, Pair]:
    grids = [_pair("grid", grid, workers)] if grid is not None else _pairs(workers)
    data = (
        [_pair("data_grid", data_grid, data_blocks)]
        if data_grid is not None
        else _pairs(data_blocks)
    )
    fitting = [(n, s) for n in grids for s in data if s[0] <= n[0] and s[1] <= n[1]]
    if not fitting:
        near = max(_pairs(workers), key=lambda n: min(n))
        raise InvalidCode(
            f"no grid of {workers} workers holds one of {data_blocks} data blocks in its corner: "
            f"take for example {(near[0] - 1) * (near[1] - 1) or 1} data blocks"
        )

    def parity(pair: tuple[Pair, Pair]) -> tuple[int, int]:
        (n1, n2), (s1, s2) = pair
        return min(n1 - s1, n2 - s2), -abs(n1 - n2)

    return max(fitting, key=parity)


def _pairs(number: int) -> list[Pair]:
    return [(a, number // a) for a in range(1, number + 1) if number % a == 0]


def _pair(name: str, pair: Sequence[int], number: int) -> Pair:
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
        raise InvalidCode(f"{name} must be two integers, got {pair!r}")
    first, second = (integer(name, value, 1, None) for value in pair)
    if first * second != number:
        raise InvalidCode(f"{name} must have {number} cells, got {first} x {second}")
    return first, second
