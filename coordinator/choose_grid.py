"""The grid of a matrix product when nobody said it: by simulated time, and explained.

Every candidate survives any four dead workers (`coordinator.grid_candidates`). Of those the
smallest grid within 10 % of the least expected time is taken, as `coordinator.choose` does for one
matrix.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from coordinator.choose import checked_matrix
from coordinator.default_code import AUTO, CodeFamily
from coordinator.expected_time import ExpectedTime
from coordinator.grid_candidates import GridSearch, Lines, Pair, by
from coordinator.grid_sizes import GridLine, counted, line_family
from coordinator.pair_fits import check_pair_fits
from coordinator.pair_time import PairWork, expected_pair_time
from coordinator.planned_pairs import Factor, planned_pair, planned_task
from coordinator.platform import Platform
from coordinator.refusals import PlanRefused
from polarcodes import CODE_NAMES, ErasureCode, InvalidCode
from polarcodes.delays import DelayModel, make_delays
from polarcodes.grid import APPROXIMATE, GridCode

__all__ = ["GridChoice", "choose_grid"]

WITHIN = 1.10
ROUNDS = 100
POLYNOMIAL = (  # for who expects it here
    "; polynomial codes over the reals lose their digits and are only there to be measured: "
    "python -m benchmarks.polynomial"
)
RIGHT_SEED = 1 << 16  # what is random in the right code differs from the left one's


@dataclass(frozen=True)
class GridChoice:
    """The two codes chosen, the expected time that decided, and why.

    survives: any so many dead workers leave a decodable set, (t1 + 1)(t2 + 1) - 1.
    """

    left: GridLine
    right: GridLine
    time: ExpectedTime
    survives: int
    explanation: tuple[str, ...] = ()

    @property
    def grid(self) -> Pair:
        """(N1, N2)."""
        return self.left.workers, self.right.workers

    @property
    def data_grid(self) -> Pair:
        """(s1, s2)."""
        return self.left.data_blocks, self.right.data_blocks

    def make(self, seed: int = 0) -> tuple[ErasureCode, ErasureCode]:
        """The codes of A and of B; raises `InvalidCode` for a seed that they do not have."""
        return self.left.make(seed), self.right.make(seed + RIGHT_SEED)


def choose_grid(
    left: Factor,
    right: Factor,
    *,
    grid: Pair | None = None,
    data_grid: Pair | None = None,
    code: str = AUTO,
    options: Mapping[str, Any] | None = None,
    encoded: tuple[ErasureCode | None, ErasureCode | None] = (None, None),
    worker_memory_mb: int = 1_769,
    worker_timeout: float = 300.0,
    delays: DelayModel | None = None,
    platform: Platform | None = None,
) -> GridChoice:
    """Choose what is not given of N1 x N2 and s1 x s2, among the grids whose tasks fit the worker.

    `code` is a name of `polarcodes.make_code` for both factors, or two of them with a comma between
    ("hadamard,uncoded" codes A alone); "auto" takes Hadamard codes for floats and integer parities
    for integers. `encoded`: the code of a factor that is encoded already. Raises `PlanRefused`
    naming the number to change, `InvalidCode`.
    """
    for factor, axes in ((left, "A"), (right, "B")):
        checked_matrix((factor.rows, factor.inner), factor.dtype)
        if factor.inner != left.inner:
            raise PlanRefused(axes, factor.inner, left.inner, "the inner dimensions differ")
    search = GridSearch(
        (left, right),
        _families(code, dict(options or {}), left, right),
        (
            None if encoded[0] is None else GridLine.of(encoded[0]),
            None if encoded[1] is None else GridLine.of(encoded[1]),
        ),
    )
    model = delays if delays is not None else make_delays("lambda-rare-tail")
    platform = platform or Platform()

    def timed(lines: Lines) -> GridChoice:
        codes = lines[0].make(0), lines[1].make(RIGHT_SEED)
        pair = planned_pair(left, right, codes)
        task = planned_task(pair)
        work = PairWork.of(task)
        check_pair_fits(task, work, worker_memory_mb, worker_timeout, platform)
        time = expected_pair_time(
            pair, GridCode(*codes), work, worker_memory_mb, model, platform, ROUNDS
        )
        one, other = (
            line.survives if line.survives is not None else counted(made)
            for line, made in zip(lines, codes, strict=True)
        )
        return GridChoice(*lines, time, (one + 1) * (other + 1) - 1)

    given = search.given(grid, data_grid)
    if given is not None:
        return _explained(timed(given), "given")
    choices, refusal = [], None
    for lines in search.candidates(grid, data_grid):
        try:
            choices.append(timed(lines))
        except PlanRefused as error:
            refusal = error
    if not choices:
        raise refusal or search.nothing_fits(grid, data_grid)
    choices.sort(key=lambda choice: (math.prod(choice.grid), choice.time.coded))
    least = min(choice.time.coded for choice in choices)
    chosen = next(c for c in choices if c.time.coded <= WITHIN * least)
    seen = ", ".join(f"{by(c.grid)}: {c.time.coded:.2f} s" for c in choices)
    why = f"the fewest workers within {WITHIN - 1:.0%} of the least expected time ({seen})"
    return _explained(chosen, why if len(choices) > 1 else "the only one that fits")


def _explained(choice: GridChoice, why: str) -> GridChoice:
    lines = [
        f"grid {by(choice.grid)}, data blocks {by(choice.data_grid)}: {why}",
        f"survives any {choice.survives} dead workers",
    ]
    for side, line in (("A", choice.left), ("B", choice.right)):
        if line.family.why:
            lines.append(f"code of {side} = {line.family}: {line.family.why}")
    return replace(choice, explanation=tuple(lines))


def _families(
    code: str, options: dict[str, Any], left: Factor, right: Factor
) -> tuple[CodeFamily, CodeFamily]:
    names = code.split(",")
    if len(names) > 2 or any(name not in (AUTO, *CODE_NAMES) for name in names):
        raise InvalidCode(
            f"code must be one of {', '.join((AUTO, *CODE_NAMES))}, or two of them with a comma "
            f"between for A and B, got {code!r}" + (POLYNOMIAL if "polynomial" in code else "")
        )
    if any(name in APPROXIMATE for name in names):
        raise InvalidCode(f"code {code!r} decodes approximately: a grid needs exact lines")
    if options and (len(names) == 2 or names[0] == AUTO):
        raise PlanRefused("options", ", ".join(options), None, "they need one code for both sides")
    first, second = names[0], names[-1]
    kinds = left.dtype, right.dtype
    return line_family(first, options, *kinds), line_family(second, options, *kinds[::-1])
