"""Berrut approximated coded computing: rational interpolation through whatever has arrived."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.checks import integer
from polarcodes.dense import DenseCode
from polarcodes.estimate import Estimate
from polarcodes.manifest import Fields
from polarcodes.products import column_product

Ids = NDArray[np.intp]
Float = NDArray[np.float64]

_SETS = 16  # random sets that predicted_error averages over


class BerrutCode(DenseCode):
    """Worker i holds u(beta_i), u Berrut's rational interpolant of the data blocks at alpha_k.

    alpha are the s Chebyshev nodes of the first kind, beta the N of the second. The estimate is
    Berrut's interpolant through the answers (beta_i, y_i), i in S, at alpha_k: it never fails, is
    always an approximation and lives on data blocks that vary smoothly with k. For blocks that
    have nothing to do with each other its error hardly falls before N; the paper's use is
    functions f(X_k) of similar inputs. Since products are linear, the exact answer is there too:
    the pseudo-inverse of the received rows, as soon as it is well enough conditioned, which with
    few spare workers is when nearly all have answered.

    References
    ----------
    Jahani-Nezhad and Maddah-Ali, "Berrut Approximated Coded Computing: Straggler Resistance Beyond
    Polynomial Computing", arXiv 2009.08327.

    >>> code = BerrutCode(9, 4)
    >>> smooth = np.array([[1.0], [1.1], [1.3], [1.4]])
    >>> S = [0, 1, 2, 4, 5, 7, 8]
    >>> bool(np.abs(code.estimate(S, code.encode(smooth)[S]).value - smooth).max() < 0.1)
    True
    """

    name = "berrut"

    def __init__(self, workers: int, data_blocks: int, seed: int = 0) -> None:
        count = integer("workers", workers, 1, 1 << 20)
        blocks = integer("data_blocks", data_blocks, 1, count)
        self._check_size(self.name, count, blocks)
        self._alpha = np.cos(math.pi * (np.arange(blocks) + 0.5) / blocks)
        self._beta = np.cos(math.pi * np.arange(count) / max(count - 1, 1))
        generator = interpolation(self._alpha, self._beta)
        self._assemble(integer("seed", seed, 0, None), generator)

    def predicted_error(self, m: int) -> float:
        """Return the rms relative error for blocks of equal strength, over 16 fixed random sets."""
        arrived = integer("m", m, 0, self.workers)
        if arrived in (0, self.workers):
            return 0.0 if arrived else math.inf
        rng = np.random.Generator(np.random.Philox(arrived))
        squares = [
            self._isotropic_error(np.sort(rng.permutation(self.workers)[:arrived])) ** 2
            for _ in range(_SETS)
        ]
        return math.sqrt(float(np.mean(squares)))

    def to_manifest(self) -> dict[str, Any]:
        """Return the code as pure JSON: nothing in it is random."""
        return {
            "name": self.name,
            "version": 1,
            "workers": self.workers,
            "data_blocks": self.data_blocks,
            "seed": self.seed,
        }

    @classmethod
    def from_manifest(cls, manifest: dict[str, Any]) -> BerrutCode:
        """Rebuild the code; raises InvalidManifest."""
        fields = Fields(manifest, cls.name, ("workers", "data_blocks", "seed"))
        with fields.as_invalid_manifest():
            return cls(manifest["workers"], manifest["data_blocks"], manifest["seed"])

    def _isotropic_error(self, workers: Ids) -> float:
        error = self._decoder(workers) @ self._generator[workers] - np.eye(self.data_blocks)
        return float(np.linalg.norm(error)) / math.sqrt(self.data_blocks)

    def _decoder(self, workers: Ids) -> Float:
        """Return the s x m matrix of Berrut's interpolant through the answers of sorted workers."""
        return interpolation(self._beta[workers], self._alpha)

    def _estimate(self, workers: Ids, answers: NDArray[Any]) -> Estimate:
        """Berrut's interpolant; the upper bound is its largest gain over all products.

        Biased: what it leaves out does not depend on chance. No draw of the code averages it away.
        """
        value = np.zeros((self.data_blocks, answers.shape[1]), answers.dtype)
        if workers.size in (0, self.workers):
            if workers.size == 0:
                return Estimate(value, math.inf, math.inf, math.inf, "berrut")
            return Estimate(self.plan(workers).apply(answers), 0.0, 0.0, 0.0, "decoded")
        order = np.argsort(workers)
        decoder = self._decoder(workers[order])
        column_product(decoder, answers[order], value)
        error = decoder @ self._generator[workers[order]] - np.eye(self.data_blocks)
        relative = float(np.linalg.norm(error)) / math.sqrt(self.data_blocks)
        energy = float(np.sum(answers.astype(np.float64) ** 2)) * self.data_blocks
        absolute = relative * math.sqrt(energy / self._row_energy(workers))
        return Estimate(value, relative, float(np.linalg.norm(error, 2)), absolute, "berrut")


def interpolation(nodes: Float, points: Float) -> Float:
    """Return the matrix from values at sorted ``nodes`` to Berrut's interpolant at ``points``.

    Row p holds w_k / sum_j w_j with w_k = (-1)^k / (p - node_k); a unit row where p is a node.
    Berrut, "Rational functions for guaranteed and experimentally well-conditioned global
    interpolation" (1988): no poles on the real line.
    """
    distances = points[:, None] - nodes[None, :]
    at_node = np.abs(distances) < 1e-14
    signs = np.where(np.arange(nodes.size) % 2, -1.0, 1.0)
    weights = signs / np.where(at_node, 1.0, distances)
    weights[at_node.any(axis=1)] = 0.0
    weights[at_node] = 1.0
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
