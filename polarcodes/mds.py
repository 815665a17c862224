"""Maximum distance separable codes over the reals: any s answers determine the product."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from polarcodes.checks import integer
from polarcodes.code import ErasureCode
from polarcodes.dense import DenseCode
from polarcodes.errors import InvalidCode, InvalidManifest
from polarcodes.manifest import Fields
from polarcodes.randomness import words

_COLUMNS = 1 << 14
_LARGEST_FACTOR = 1 << 31

BASES = ("random", "chebyshev", "integer", "vandermonde")


class MdsCode(DenseCode):
    """Any s of the N rows of the generator are independent; how well, depends on the basis.

    ``random`` (the default): independent uniform entries of variance one, as good as a real dense
    code gets: condition numbers grow like a power of s for any pattern of erasures. ``chebyshev``:
    row i holds the Chebyshev polynomials at the i-th Chebyshev node, orthogonal when everybody
    answers; the condition number grows exponentially with the length of a gap of neighbours.
    ``integer``: the data blocks themselves and the parities sum_k v_k^j U_k, j = 0, 1, ..., whose
    integers stay exact; v = 1, -1, 2, -2, ... for two parities at most, else 1, 2, 3, ... (any
    square part of such rows is invertible). For few parities: entries grow like s^j.
    ``vandermonde``: monomials at equidistant nodes, which real-number MDS codes are often shown
    with, and which lose all digits of float64 from about 40 data blocks on; kept to show why.
    Encoding costs N s multiplications a column, decoding s^2.

    References
    ----------
    Lee et al., "Speeding Up Distributed Machine Learning Using Codes", arXiv 1512.02673; Fahim and
    Cadambe, "Numerically Stable Polynomially Coded Computing", arXiv 1903.08326 (Chebyshev).

    >>> code = MdsCode(6, 4, seed=1)
    >>> U = np.arange(8.0).reshape(4, 2)
    >>> np.allclose(code.plan([5, 0, 3, 2]).apply(code.encode(U)[[5, 0, 3, 2]]), U)
    True
    """

    name = "mds"

    def __init__(
        self, workers: int, data_blocks: int, seed: int = 0, *, basis: str = "random"
    ) -> None:
        count = integer("workers", workers, 1, 1 << 20)
        blocks = integer("data_blocks", data_blocks, 1, count)
        seed = integer("seed", seed, 0, None)
        if basis not in BASES:
            raise InvalidCode(f"basis must be one of {', '.join(BASES)}, got {basis!r}")
        self._check_size(self.name, count, blocks)
        self._basis = basis
        if basis == "integer" and blocks ** max(count - blocks - 1, 0) > _LARGEST_FACTOR:
            raise InvalidCode(
                f"the integer basis of {blocks} data blocks has at most a few parities, got "
                f"{count - blocks}: their factors exceed 2^31; take 'random'"
            )
        self._assemble(seed, _generator(basis, count, blocks, seed))
        if basis == "vandermonde" and not self.decodable(range(count)):
            raise InvalidCode(
                f"the vandermonde basis of {blocks} data blocks and {count} workers has condition "
                f"number {np.linalg.cond(self._generator):.0e} with all answers: take 'random'"
            )

    @property
    def basis(self) -> str:
        """Which family of rows: random, chebyshev, integer or vandermonde."""
        return self._basis

    def encoded_dtype(
        self, source: DTypeLike, low: float | int, high: float | int
    ) -> np.dtype[Any]:
        """Return an exact integer dtype for integers in the integer basis, else floats."""
        if self._basis == "integer":
            return ErasureCode.encoded_dtype(self, source, low, high)
        return super().encoded_dtype(source, low, high)

    def to_manifest(self) -> dict[str, Any]:
        """Return the code as pure JSON.

        The random entries are exact functions of raw Philox words of the seed, and a digest says
        whether they still are; N s numbers would make a manifest of megabytes.
        """
        return {
            "name": self.name,
            "version": 1,
            "workers": self.workers,
            "data_blocks": self.data_blocks,
            "seed": self.seed,
            "basis": self.basis,
            "digest": self._digest(),
        }

    @classmethod
    def from_manifest(cls, manifest: dict[str, Any]) -> MdsCode:
        """Rebuild the code; raises InvalidManifest, also when the entries come out differently."""
        fields = Fields(manifest, cls.name, ("workers", "data_blocks", "seed", "basis", "digest"))
        with fields.as_invalid_manifest():
            code = cls(
                manifest["workers"],
                manifest["data_blocks"],
                manifest["seed"],
                basis=manifest["basis"],
            )
        if manifest["digest"] != code._digest():
            raise InvalidManifest(
                f"digest must be {code._digest()!r} for these parameters, got "
                f"{manifest['digest']!r}: the blocks were encoded with other entries"
            )
        return code

    def _digest(self) -> str:
        """Return the digest of random entries; the other bases have nothing random."""
        if self._basis != "random":
            return ""
        return hashlib.sha256(self._generator.astype("<f8").tobytes()).hexdigest()

    def _encode(self, blocks: NDArray[Any], out: NDArray[Any]) -> None:
        if self._basis != "integer":
            super()._encode(blocks, out)
            return
        size = self.data_blocks
        for start in range(0, out.shape[1], _COLUMNS):  # converted copies, in place or not
            columns = slice(start, start + _COLUMNS)
            data = blocks[:, columns].astype(out.dtype)
            out[:size, columns] = data
            for row in range(size, self.workers):
                factors = self._generator[row].astype(out.dtype)
                np.einsum("k,kl->l", factors, data, out=out[row, columns])

    def _upper(self, arrived: int) -> float:
        """Return the 97.7 % point of the lost share; of a random projection only.

        For random rows 1 - ||PX||^2 / ||X||^2 is close to Beta((s-m)/2, m/2) for any product.
        """
        blocks = self.data_blocks
        if self._basis != "random" or arrived >= blocks:
            return 1.0
        lost = 1 - arrived / blocks
        spread = math.sqrt(2 * lost * (1 - lost) / (blocks + 2))
        return min(1.0, math.sqrt(lost + 2 * spread)) if blocks >= 8 else 1.0


def _generator(basis: str, workers: int, data_blocks: int, seed: int) -> NDArray[np.float64]:
    if basis == "random":
        mantissas = (words(workers * data_blocks, seed) >> np.uint64(11)).astype(np.float64)
        uniform: NDArray[np.float64] = math.sqrt(12.0) * (mantissas * 2.0**-53 - 0.5)
        return uniform.reshape(workers, data_blocks)
    if basis == "chebyshev":
        angles = math.pi * (np.arange(workers) + 0.5) / workers
        entries = np.cos(np.outer(angles, np.arange(data_blocks)))
        entries[:, 1:] *= math.sqrt(2.0)
        return np.asarray(entries)
    if basis == "integer":
        parities = workers - data_blocks
        steps = np.arange(data_blocks, dtype=np.float64)
        values = (steps // 2 + 1) * (1 - 2 * (steps % 2)) if parities <= 2 else steps + 1
        return np.vstack([np.eye(data_blocks), values ** np.arange(parities)[:, None]])
    nodes = np.linspace(-1.0, 1.0, workers) if workers > 1 else np.ones(1)
    return np.asarray(nodes[:, None] ** np.arange(data_blocks))
