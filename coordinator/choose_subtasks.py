"""How many tasks a worker gets when nobody said so: by simulated time, and explained.

For every r the run is simulated with its best redundancy, under the delay model, every message
charged with its requests (read, write, but for the first a look for the stop marker) at the
platform's request time.
The smallest r within 5 % of the fastest wins: a message is money and requests, and several for a
few per cent are neither worth it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coordinator.choose import BLOCKS_WITHIN, CodeChoice, choose_code
from coordinator.cost import Usage, cost
from coordinator.default_code import AUTO
from coordinator.platform import Platform
from coordinator.prices import Prices, load_prices
from coordinator.refusals import PlanRefused
from polarcodes import CodeError
from polarcodes.delays import DelayModel

__all__ = ["SubtasksChoice", "choose_subtasks"]

CANDIDATES = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class SubtasksChoice:
    """r, the code chosen for it, and why."""

    subtasks: int
    code: CodeChoice
    explanation: str

    @property
    def explained(self) -> CodeChoice:
        """The code with the reasons for r before its own."""
        return replace(self.code, explanation=(self.explanation, *self.code.explanation))


def choose_subtasks(
    shape: tuple[int, int],
    dtype: np.dtype[Any] | str,
    *,
    workers: int | None = None,
    data_blocks: int | None = None,
    redundancy: float | None = None,
    code: str = AUTO,
    options: Mapping[str, Any] | None = None,
    per_object: int = 1,
    k: int = 1,
    worker_memory_mb: int = 1_769,
    delays: DelayModel | None = None,
    platform: Platform | None = None,
    prices: Prices | None = None,
) -> SubtasksChoice:
    """Choose r, with as many workers for each r as one message per worker would have.

    `workers`, `data_blocks`, `redundancy`, `code` and `options` are as in `choose_code`, s counted
    per worker; "auto" is decided for every r. r that would make more data blocks than rows, or that
    `per_object` does not divide, are left out. Raises PlanRefused if none is left, and what
    `choose_code` raises. Cost: a second or two.
    """
    candidates = [r for r in CANDIDATES if per_object > 0 and r % per_object == 0]
    if not candidates:
        raise PlanRefused(
            "results per object", per_object, 1, f"it must divide one of {CANDIDATES} subtasks"
        )
    prices = prices or load_prices()
    choices: dict[int, CodeChoice] = {}
    for r in candidates:
        try:
            choice = choose_code(
                shape,
                dtype,
                workers=workers,
                data_blocks=data_blocks,
                redundancy=redundancy,
                code=code,
                options=options,
                k=k,
                subtasks=r,
                worker_memory_mb=worker_memory_mb,
                delays=delays,
                platform=platform,
            )
        except (PlanRefused, CodeError):  # not for so many blocks
            if not choices:
                raise
            continue
        if choices and choice.data_blocks * r > shape[0]:
            continue
        workers = choice.workers
        choices[r] = choice
    fastest = min(choice.time.coded for choice in choices.values())
    best = next(r for r, c in choices.items() if c.time.coded <= BLOCKS_WITHIN * fastest)
    seen = ", ".join(f"{r}: {c.time.coded:.2f} s" for r, c in choices.items())
    workers, count = choices[best].workers, choices[best].workers * best
    usage = Usage(puts=count, gets=2 * count, lists=count - workers)
    dollars = cost(usage, prices).total
    return SubtasksChoice(
        best,
        choices[best],
        f"subtasks = {best}: the fewest within {BLOCKS_WITHIN - 1:.0%} of the least expected time "
        f"({seen}); {count} messages, ${dollars:.5f} of requests a product",
    )
