"""Maximum distance separable codes over the reals: any s answers determine the product."""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.checks import integer
from polarcodes.dense import DenseCode
from polarcodes.errors import InvalidCode, InvalidManifest
from polarcodes.manifest import Fields
from polarcodes.randomness import words

BASES = ("random", "chebyshev", "vandermonde")


class MdsCode(DenseCode):
    """Any s of the N rows of the generator are independent; how well, depends on the basis.

    ``random`` (the default): independent uniform entries of variance one, as good as a real dense
    code gets: condition numbers grow like a power of s for any pattern of erasures. ``chebyshev``:
    row i holds the Chebyshev polynomials at the i-th Chebyshev node, orthogonal when everybody
    answers; the condition number grows exponentially with the length of a gap of neighbours.
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
        self._assemble(seed, _generator(basis, count, blocks, seed))
        if basis == "vandermonde" and not self.decodable(range(count)):
            raise InvalidCode(
                f"the vandermonde basis of {blocks} data blocks and {count} workers has condition "
                f"number {np.linalg.cond(self._generator):.0e} with all answers: take 'random'"
            )

    @property
    def basis(self) -> str:
        """Which family of rows: random, chebyshev or vandermonde."""
        return self._basis

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
    nodes = np.linspace(-1.0, 1.0, workers) if workers > 1 else np.ones(1)
    return np.asarray(nodes[:, None] ** np.arange(data_blocks))
