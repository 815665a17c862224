"""Directions that are the rows of an erasure code: any decodable set gives the whole gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.code import ErasureCode
from polarcodes.directions.base import Directions
from polarcodes.directions.solve import GradientEstimate
from polarcodes.errors import InvalidCode
from polarcodes.registry import code_from_manifest, make_code

__all__ = ["CODES", "CodedDirections"]

CODES = ("hadamard", "polar")


class CodedDirections(Directions):
    """Rows z_i of a code with s = p data blocks over N workers: parameters are its data slots.

    With the polar code these are rows of H D with the frozen coordinates left out: structured
    evolution strategies with redundancy. N - p of the evaluations may be missing at best. The
    default, two rotated Hadamard rounds, decodes from any p.
    """

    kind = "coded"

    def __init__(self, code: ErasureCode) -> None:
        super().__init__(code.data_blocks, code.workers, code.seed)
        self.code = code

    @classmethod
    def make(
        cls, parameters: int, count: int, seed: int, *, code: str = "hadamard"
    ) -> CodedDirections:
        """Make the code; raises `InvalidCode` for an N it cannot have."""
        if code not in CODES:
            raise InvalidCode(f"code must be one of {', '.join(CODES)}, got {code!r}")
        if parameters == 1:  # codes have two workers at least, and may have one data block
            count = max(count, 2)
        return cls(make_code(code, workers=count, data_blocks=parameters, seed=seed))

    def decodable(self, S: Any) -> bool:
        """What the code says: for the polar code its sequential decoder."""
        return self.code.decodable(S)

    def predicted_error(self, m: int) -> float:
        """The code's: v = (s - 1)(N - m) / (m (N - 1)) for +-1 rows, as its square."""
        return self.code.predicted_error(m)

    def to_manifest(self) -> dict[str, Any]:
        """The code's manifest, slots and signs written out."""
        return {"kind": self.kind, "code": self.code.to_manifest()}

    @classmethod
    def from_manifest(cls, manifest: dict[str, Any]) -> CodedDirections:
        """Rebuild them; raises `InvalidManifest`."""
        return cls(code_from_manifest(manifest.get("code")))

    def _vectors(self, workers: NDArray[np.intp]) -> NDArray[np.float64]:
        return self.code.rows(workers)

    def _gradient(
        self, workers: NDArray[np.intp], slopes: NDArray[np.float64], estimator: str
    ) -> GradientEstimate:
        if estimator == "decode" and self.code.decodable(workers):
            plan = self.code.plan(workers)
            return GradientEstimate(plan.apply(slopes[:, None])[:, 0], True, 0.0, "decode")
        return super()._gradient(workers, slopes, estimator)
