"""How many directions an iteration should evaluate: `polarlambda optimize --plan`.

Expected seconds of an iteration with N directions of which any p decode: the p-th smallest of N
times, each the evaluation's and a delay. More directions shorten that wait, cost in proportion, and
average noise: the gradient's squared error from noise of variance tau^2 in f is at least
tau^2 p / (2 sigma^2 N).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coordinator.cost import Usage, cost
from coordinator.prices import Prices
from polarcodes.delays import DelayModel
from polarlambda.errors import BadInput

__all__ = ["Population", "plan_population"]

ROUNDS = 400


@dataclass(frozen=True)
class Population:
    """An iteration with `workers` directions: expected and 99th-percentile seconds, dollars, and
    the rms error of the gradient from noise relative to that of N = p."""

    workers: int
    redundancy: float
    seconds: float
    seconds_p99: float
    dollars: float
    noise: float
    chosen: bool = False

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return asdict(self)


def plan_population(
    parameters: int,
    evaluation_seconds: float,
    delays: DelayModel,
    prices: Prices,
    *,
    memory_mb: int = 1769,
    seed: int = 0,
) -> list[Population]:
    """Candidates from N = p (wait for all) to 2 p, one of them chosen: the least product of
    seconds and dollars.

    `evaluation_seconds` : of one value of the objective; a pair takes twice that. Raises
    `BadInput`. Cost: 400 simulated iterations of 2 p workers.
    """
    if parameters < 1:
        raise BadInput(f"parameters must be at least 1, got {parameters}")
    if not 0 < evaluation_seconds < float("inf"):
        raise BadInput(f"evaluation seconds must be above 0, got {evaluation_seconds}")
    most = max(2, 2 * parameters)
    times = 2 * evaluation_seconds + delays.sample(np.random.default_rng(seed), ROUNDS, most)
    shares = (0.0, 0.03, 0.06, 0.1, 0.15, 0.2, 0.25, 0.33, 0.4, 0.5)
    sizes = sorted({min(most, max(2, round(parameters / (1 - share)))) for share in shares})
    rows = [_row(times, size, parameters, prices, memory_mb) for size in sizes]
    best = min(rows, key=lambda row: row.seconds * row.dollars)
    return [Population(**{**asdict(row), "chosen": row is best}) for row in rows]


def _row(
    times: NDArray[np.float64], workers: int, parameters: int, prices: Prices, memory_mb: int
) -> Population:
    mine = times[:, :workers]
    waits = np.partition(mine, parameters - 1, axis=1)[:, parameters - 1]
    usage = Usage(
        puts=workers + 5,
        gets=3 * workers,
        invokes=workers,
        worker_gb_seconds=float(mine.mean()) * workers * memory_mb / 1024,
    )
    return Population(
        workers=workers,
        redundancy=1 - parameters / workers,
        seconds=float(waits.mean()),
        seconds_p99=float(np.quantile(waits, 0.99)),
        dollars=cost(usage, prices).total,
        noise=float(np.sqrt(parameters / workers)),
    )
