"""The simplest erasure code for tests of the run's rules: any s answers decode."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class AnySOfN:
    workers: int
    data_blocks: int

    def decodable(self, S: Iterable[int]) -> bool:
        return len(set(S)) >= self.data_blocks

    def estimate_error(self, S: Iterable[int]) -> float:
        return self.predicted_error(len(set(S)))

    def predicted_error(self, m: int) -> float:
        if m == 0:
            return float("inf")
        s, n = self.data_blocks, self.workers
        return float(((s - 1) * (n - m) / (m * (n - 1))) ** 0.5)
