"""No coding: worker i multiplies data block i and everybody must answer. The baseline."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.arrivals import ANSWER_ERROR, TOLERANCE, CountedArrivals
from polarcodes.checks import integer, worker_indices
from polarcodes.code import ErasureCode
from polarcodes.errors import InvalidCode, NotDecodable
from polarcodes.estimate import Estimate, mean_square
from polarcodes.manifest import Fields
from polarcodes.plan import SelectionPlan


class UncodedCode(ErasureCode):
    """The identity: N = s, exact only when all N workers have answered.

    Until then the estimate puts zeros where answers are missing.

    >>> code = UncodedCode(3, 3)
    >>> code.decodable([0, 2]), code.decodable([2, 0, 1])
    (False, True)
    """

    name = "uncoded"
    adds_blocks = False

    def __init__(self, workers: int, data_blocks: int, seed: int = 0) -> None:
        count = integer("workers", workers, 1, 1 << 20)
        if integer("data_blocks", data_blocks, 1, None) != count:
            raise InvalidCode(
                f"without coding data_blocks must equal workers, got {data_blocks} data blocks "
                f"and {count} workers"
            )
        super().__init__(count, count, integer("seed", seed, 0, None), np.arange(count))

    @property
    def row_weight(self) -> int:
        """1: nothing is added up."""
        return 1

    def arrivals(
        self, *, answer_error: float = ANSWER_ERROR, tolerance: float = TOLERANCE
    ) -> CountedArrivals:
        """Return an empty arrivals state."""
        return CountedArrivals(self.workers, self.workers, answer_error, tolerance)

    def decodable(
        self,
        S: Iterable[int],
        *,
        answer_error: float = ANSWER_ERROR,
        tolerance: float = TOLERANCE,
    ) -> bool:
        """Return whether S is everybody."""
        return worker_indices(S, self.workers).size == self.workers

    def plan(
        self,
        S: Iterable[int],
        *,
        answer_error: float = ANSWER_ERROR,
        tolerance: float = TOLERANCE,
    ) -> SelectionPlan:
        """Return the plan that puts the answers in order; raises NotDecodable."""
        workers = worker_indices(S, self.workers)
        missing = np.setdiff1d(np.arange(self.workers), workers)
        if missing.size:
            raise NotDecodable(missing.size, missing.tolist())
        return SelectionPlan(workers, np.argsort(workers))

    def predicted_error(self, m: int) -> float:
        """Return sqrt(1 - m/s) for blocks of equal strength."""
        arrived = integer("m", m, 0, self.workers)
        return math.sqrt(1 - arrived / self.workers) if arrived else math.inf

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
    def from_manifest(cls, manifest: dict[str, Any]) -> UncodedCode:
        """Rebuild the code; raises InvalidManifest."""
        fields = Fields(manifest, cls.name, ("workers", "data_blocks", "seed"))
        with fields.as_invalid_manifest():
            return cls(manifest["workers"], manifest["data_blocks"], manifest["seed"])

    def _encode(self, blocks: NDArray[Any], out: NDArray[Any]) -> None:
        out[...] = blocks

    def _encode_inplace(self, buffer: NDArray[Any]) -> None:
        """Nothing to do: data block k is coded block k."""

    def _encode_rows(self, blocks: NDArray[Any], workers: NDArray[np.intp]) -> NDArray[Any]:
        return blocks[workers]

    def _adjoint(self, answers: NDArray[Any], workers: NDArray[np.intp]) -> NDArray[Any]:
        out = np.zeros((self.data_blocks, answers.shape[1]), answers.dtype)
        out[workers] = answers
        return out

    def _estimate(self, workers: NDArray[np.intp], answers: NDArray[Any]) -> Estimate:
        """Zeros for the missing blocks.

        Their energy is as unknown as they are: up to all of it, whatever has arrived, so the only
        honest upper bound is 1 until the last one is there.
        """
        relative = self.predicted_error(workers.size)
        energy = mean_square(answers) * self.workers
        return Estimate(
            value=self._adjoint(answers, workers),
            relative_error=relative,
            relative_error_upper=min(1.0, math.ceil(relative)) if workers.size else math.inf,
            absolute_error=relative * math.sqrt(energy) if workers.size else math.inf,
            method="zero-fill",
        )
