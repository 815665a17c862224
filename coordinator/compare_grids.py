"""Which side of a matrix product to code: the plans of all the ways, with equally many workers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from coordinator.choose_grid import GridChoice, choose_grid
from coordinator.decode_wish import DecodeWish
from coordinator.grid_sizes import SURVIVED
from coordinator.pair_plan import PairPlan, plan_pair
from coordinator.planned_pairs import Factor, planned_pair
from coordinator.platform import Platform
from coordinator.prices import Prices
from coordinator.refusals import PlanRefused
from polarcodes import InvalidCode
from polarcodes.delays import DelayModel

__all__ = ["Way", "compare_grids"]

ROUNDS = 200


@dataclass(frozen=True)
class Way:
    """A way to multiply and its plan; `refused` says why there is none.

    survives: dead workers that it survives, whichever they are.
    """

    name: str
    survives: int
    plan: PairPlan | None
    refused: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        figures = self.plan.to_json() if self.plan else None
        return {
            "way": self.name,
            "survives": self.survives,
            "plan": figures,
            "refused": self.refused,
        }


def compare_grids(
    left: Factor,
    right: Factor,
    chosen: GridChoice,
    *,
    code: str = "auto",
    worker_memory_mb: int = 1_769,
    worker_timeout: float = 300.0,
    delays: DelayModel | None = None,
    platform: Platform | None = None,
    prices: Prices | None = None,
    wish: DecodeWish | None = None,
) -> tuple[Way, ...]:
    """Plan the chosen grid, one side coded, the columns of B in groups, and no coding.

    All with as many workers as the grid (rounded down where a group has fewer), and surviving any
    four dead ones, but for the last. "A alone" gives every worker all of B; "B in groups" cuts B
    into as many groups as blocks of A and B come out alike, each group coded along A alone. Two
    commas of a code name say the same: "hadamard,uncoded".
    """
    workers = math.prod(chosen.grid)
    first, _, second = code.partition(",")
    second = second or first
    groups = _groups(left, right, workers)
    ways: list[tuple[str, tuple[int, int], str, int]] = [
        ("A alone", (workers, 1), f"{first},uncoded", SURVIVED),
        ("B alone", (1, workers), f"uncoded,{second}", SURVIVED),
        ("A, B in groups", (workers // groups, groups), f"{first},uncoded", SURVIVED),
        ("none", chosen.grid, "uncoded", 0),
    ]
    limits = {
        "worker_memory_mb": worker_memory_mb,
        "worker_timeout": worker_timeout,
        "delays": delays,
        "platform": platform,
    }
    found = [_way("both", chosen, left, right, limits, prices, wish)]
    for name, grid, family, survives in ways:
        try:
            data_grid = grid if survives == 0 else None
            choice = choose_grid(left, right, grid=grid, data_grid=data_grid, code=family, **limits)  # type: ignore[arg-type]
        except (PlanRefused, InvalidCode) as error:
            found.append(Way(name, survives, None, str(error)))
            continue
        found.append(_way(name, choice, left, right, limits, prices, wish))
    return tuple(found)


def _way(
    name: str,
    choice: GridChoice,
    left: Factor,
    right: Factor,
    limits: dict[str, Any],
    prices: Prices | None,
    wish: DecodeWish | None,
) -> Way:
    pair = planned_pair(left, right, choice.make())
    try:
        plan = plan_pair(pair, prices=prices, wish=wish, rounds=ROUNDS, **limits)
    except PlanRefused as error:
        return Way(name, choice.survives, None, str(error))
    return Way(name, choice.survives, plan)


def _groups(left: Factor, right: Factor, workers: int) -> int:
    """Groups of B's columns such that blocks of A and groups are about as large."""
    wanted = math.sqrt(workers * right.rows / left.rows)
    return max(1, min(right.rows, workers // (SURVIVED + 2), round(wanted)))
