"""What a product of two matrices will need, and which of its factors to code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from polarlambda.connect import DEPLOYED
from polarlambda.decoder import planned_decoding
from polarlambda.factors import FactorInput, check_factors, open_factor, parse_pair

if TYPE_CHECKING:
    import os

    from coordinator.choose_grid import GridChoice
    from coordinator.compare_grids import Way
    from polarlambda.encoding import MatrixSource

__all__ = ["MatmulPlan", "plan_matmul"]


@dataclass(frozen=True)
class MatmulPlan:
    """The grid chosen with its explanation, and the plans of all ways with as many workers."""

    choice: GridChoice
    ways: tuple[Way, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON of every figure."""
        return {
            "grid": list(self.choice.grid),
            "data_grid": list(self.choice.data_grid),
            "survives": self.choice.survives,
            "explanation": list(self.choice.explanation),
            "ways": [way.to_json() for way in self.ways],
        }


def plan_matmul(
    A: MatrixSource | tuple[int, int],
    B: MatrixSource | tuple[int, int],
    *,
    dtype: str = "float64",
    grid: tuple[int, int] | str | None = None,
    data_blocks: tuple[int, int] | str | None = None,
    code: str = "auto",
    delays: str = "lambda-rare-tail",
    worker_memory_mb: int | None = None,
    decode: Literal["local", "lambda"] = "local",
    result: Literal["npy", "zarr"] = "npy",
    coordinator_memory: int | str | None = None,
    concurrency: int | None = None,
    prices: str | os.PathLike[str] | None = None,
    region: str | None = None,
) -> MatmulPlan:
    """Plan C = A B: the grid of workers, and what coding both factors, one, or none would come to.

    A and B are files of which only the header is read, or shapes, of matrices of ``dtype``.
    ``decode``, ``result`` and ``coordinator_memory`` are those of `CodedMatrix.plan`. Needs
    no AWS, unless a source is an s3:// URL; writes and invokes nothing. Raises `BadInput`,
    `PlanRefused` (it names the number to change), `CodeError`, `SourceRefused`.
    """
    from coordinator.choose_grid import choose_grid
    from coordinator.compare_grids import compare_grids
    from polarlambda.planning import assumed, delay_model, price_list

    wish, _ = planned_decoding(decode, result, coordinator_memory, "local")
    left, right = _factor("A", A, dtype), _factor("B", B, dtype)
    check_factors(left, right)
    limits: dict[str, Any] = {
        "worker_memory_mb": worker_memory_mb or DEPLOYED.memory_mb,
        "worker_timeout": DEPLOYED.timeout,
        "delays": delay_model(delays),
        "platform": assumed(concurrency),
    }
    choice = choose_grid(
        left.factor,
        right.factor,
        grid=parse_pair("grid", grid),
        data_grid=parse_pair("data_blocks", data_blocks),
        code=code,
        **limits,
    )
    ways = compare_grids(
        left.factor,
        right.factor,
        choice,
        code=code,
        prices=price_list(prices, region),
        wish=wish,
        **limits,
    )
    return MatmulPlan(choice, ways)


def _factor(side: str, given: Any, dtype: str) -> FactorInput:
    import numpy as np

    from coordinator.choose import checked_matrix

    if isinstance(given, tuple):
        kind = checked_matrix(given, dtype)
        return FactorInput(side, (given[0], given[1]), np.dtype(kind).str, "C")
    return open_factor(side, given, None)
