"""Replication: every data block goes to several workers, and the first copy of each counts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.arrivals import ANSWER_ERROR, TOLERANCE
from polarcodes.checks import integer, worker_indices
from polarcodes.errors import NotDecodable
from polarcodes.estimate import Estimate, mean_square
from polarcodes.manifest import Fields
from polarcodes.plan import SelectionPlan
from polarcodes.searched import SearchedCode

Ids = NDArray[np.intp]


class ReplicationCode(SearchedCode):
    """Worker i holds data block i mod s; exact when every block has one answer.

    With c = N / s copies in random order about N (1 - s^(-1/c)) answers are needed: for two copies
    nearly all of them. Integers stay what they are, encoding copies and decoding selects. Until
    then the estimate puts zeros where a block is missing.

    References
    ----------
    Wang, Joshi and Wornell, "Using Straggler Replication to Reduce Latency in Large-scale Parallel
    Computing", arXiv 1503.03128; the backup tasks of Dean and Ghemawat's MapReduce (OSDI 2004).

    >>> code = ReplicationCode(6, 3)
    >>> code.decodable([0, 4, 2]), code.decodable([0, 3, 1, 4])
    (True, False)
    """

    name = "replication"
    adds_blocks = False

    def __init__(self, workers: int, data_blocks: int, seed: int = 0) -> None:
        count = integer("workers", workers, 1, 1 << 20)
        blocks = integer("data_blocks", data_blocks, 1, count)
        super().__init__(count, blocks, integer("seed", seed, 0, None), np.arange(blocks))

    @property
    def row_weight(self) -> int:
        """1: nothing is added up."""
        return 1

    def plan(
        self,
        S: Iterable[int],
        *,
        answer_error: float = ANSWER_ERROR,
        tolerance: float = TOLERANCE,
    ) -> SelectionPlan:
        """Return the plan that takes each block from its lowest worker; raises NotDecodable."""
        workers = worker_indices(S, self.workers)
        first = np.full(self.data_blocks, -1)
        for row in np.argsort(-workers):  # lowest worker last, so that it stays
            first[workers[row] % self.data_blocks] = row
        lacking = np.flatnonzero(first < 0)
        if lacking.size:
            raise NotDecodable(lacking.size, lacking.tolist())
        return SelectionPlan(workers, first)

    def predicted_error(self, m: int) -> float:
        """Return the rms share of blocks without an answer, blocks of equal strength.

        A block of c copies has none of them in a uniform S of size m with probability
        C(N - c, m) / C(N, m).
        """
        arrived = integer("m", m, 0, self.workers)
        if arrived == 0:
            return math.inf
        copies, more = divmod(self.workers, self.data_blocks)
        missing = more * self._none(copies + 1, arrived) if more else 0.0
        missing += (self.data_blocks - more) * self._none(copies, arrived)
        return math.sqrt(missing / self.data_blocks)

    def to_manifest(self) -> dict[str, Any]:
        """Return the code as pure JSON."""
        return {
            "name": self.name,
            "version": 1,
            "workers": self.workers,
            "data_blocks": self.data_blocks,
            "seed": self.seed,
        }

    @classmethod
    def from_manifest(cls, manifest: dict[str, Any]) -> ReplicationCode:
        """Rebuild the code; raises InvalidManifest."""
        fields = Fields(manifest, cls.name, ("workers", "data_blocks", "seed"))
        with fields.as_invalid_manifest():
            return cls(manifest["workers"], manifest["data_blocks"], manifest["seed"])

    def _none(self, copies: int, arrived: int) -> float:
        """Return the chance that none of ``copies`` workers is among ``arrived``."""
        left = self.workers - arrived
        return math.prod(max(0, left - j) / (self.workers - j) for j in range(copies))

    def _decodes(self, workers: Ids, answer_error: float, tolerance: float) -> bool:
        return np.unique(workers % self.data_blocks).size == self.data_blocks

    def _row_energy(self, workers: Ids) -> float:
        return float(workers.size)

    def _encode(self, blocks: NDArray[Any], out: NDArray[Any]) -> None:
        for start in range(0, self.workers, self.data_blocks):
            part = out[start : start + self.data_blocks]
            part[...] = blocks[: len(part)]

    def _encode_inplace(self, buffer: NDArray[Any]) -> None:
        self._encode(buffer[: self.data_blocks], buffer)

    def _encode_rows(self, blocks: NDArray[Any], workers: Ids) -> NDArray[Any]:
        return blocks[workers % self.data_blocks]

    def _adjoint(self, answers: NDArray[Any], workers: Ids) -> NDArray[Any]:
        out = np.zeros((self.data_blocks, answers.shape[1]), answers.dtype)
        np.add.at(out, workers % self.data_blocks, answers)
        return out

    def _estimate(self, workers: Ids, answers: NDArray[Any]) -> Estimate:
        """The blocks that are there, zeros for the others.

        Their energy is as unknown as they are, so the only honest upper bound is 1 until every
        block has an answer.
        """
        held, first = np.unique(workers % self.data_blocks, return_index=True)
        value = np.zeros((self.data_blocks, answers.shape[1]), answers.dtype)
        value[held] = answers[first]
        relative = self.predicted_error(workers.size)
        if workers.size == 0:
            return Estimate(value, math.inf, math.inf, math.inf, "zero-fill")
        upper = 1.0 if held.size < self.data_blocks or relative else 0.0
        energy = mean_square(answers) * self.data_blocks
        return Estimate(value, relative, upper, relative * math.sqrt(energy), "zero-fill")
