"""The grid of a matrix product when nobody said it: by simulated time, and explained.

Every candidate survives any four dead workers (`coordinator.grid_sizes.shares_of` says which
redundancy that takes in rows and columns of the grid). Of those the smallest grid within 10 % of
the least expected time is taken, as `coordinator.choose` does for one matrix.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from coordinator.choose import checked_matrix
from coordinator.default_code import AUTO, CodeFamily
from coordinator.expected_time import ExpectedTime
from coordinator.grid_sizes import (
    SURVIVED,
    GridLine,
    line_family,
    line_of_blocks,
    line_of_workers,
    shares_of,
)
from coordinator.pair_fits import check_pair_fits
from coordinator.pair_time import PairWork, expected_pair_time
from coordinator.planned_pairs import Factor, planned_pair, planned_task
from coordinator.platform import Platform
from coordinator.refusals import PlanRefused
from polarcodes import CODE_NAMES, ErasureCode, InvalidCode
from polarcodes.delays import DelayModel, make_delays
from polarcodes.grid import APPROXIMATE, GridCode

__all__ = ["GridChoice", "choose_grid"]

SIDES = (2, 3, 4, 6, 8, 12, 16, 24, 32)
MOST_WORKERS = 512  # below the default concurrency of an account
WITHIN = 1.10
ROUNDS = 100
RIGHT_SEED = 1 << 16  # what is random in the right code differs from the left one's

Pair = tuple[int, int]


@dataclass(frozen=True)
class GridChoice:
    """The two codes chosen, the expected time that decided, and why.

    survives: any so many dead workers are survived by design; 0 where the sizes were given.
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
    worker_memory_mb: int = 1_769,
    worker_timeout: float = 300.0,
    delays: DelayModel | None = None,
    platform: Platform | None = None,
) -> GridChoice:
    """Choose what is not given of N1 x N2 and s1 x s2, among the grids whose tasks fit the worker.

    `code` is a name of `polarcodes.make_code` for both factors, or two of them with a comma between
    ("hadamard,uncoded" codes A alone); "auto" takes Hadamard codes for floats and integer parities
    for integers. Raises `PlanRefused` naming the number to change, `InvalidCode`.
    """
    for factor, axes in ((left, "A"), (right, "B")):
        checked_matrix((factor.rows, factor.inner), factor.dtype)
        if factor.inner != left.inner:
            raise PlanRefused(axes, factor.inner, left.inner, "the inner dimensions differ")
    families = _families(code, dict(options or {}), left, right)
    model = delays if delays is not None else make_delays("lambda-rare-tail")
    platform = platform or Platform()

    def timed(lines: tuple[GridLine, GridLine], survives: int) -> GridChoice:
        codes = lines[0].make(0), lines[1].make(RIGHT_SEED)
        pair = planned_pair(left, right, codes)
        task = planned_task(pair)
        work = PairWork.of(task)
        check_pair_fits(task, work, worker_memory_mb, worker_timeout, platform)
        time = expected_pair_time(
            pair, GridCode(*codes), work, worker_memory_mb, model, platform, ROUNDS
        )
        return GridChoice(*lines, time, survives)

    if grid is not None and data_grid is not None:
        lines = _given(families, grid, data_grid)
        _check_rows((left, right), lines)
        why = f"grid {_by(grid)}, data blocks {_by(data_grid)}: given"
        chosen = timed(lines, 0)
        return replace(chosen, explanation=(why, *_codes(chosen)))
    candidates = _candidates(left, right, families, grid, data_grid)
    found = list({_sizes(lines): lines for lines in candidates}.values())
    if not found:
        raise _nothing_fits(left, right, families, grid, data_grid)
    choices, refusal = [], None
    for lines in found:
        try:
            choices.append(timed(lines, SURVIVED))
        except PlanRefused as error:
            refusal = error
    if not choices and refusal is not None:
        raise refusal
    choices.sort(key=lambda choice: (math.prod(choice.grid), choice.time.coded))
    least = min(choice.time.coded for choice in choices)
    chosen = next(c for c in choices if c.time.coded <= WITHIN * least)
    seen = ", ".join(f"{_by(c.grid)}: {c.time.coded:.2f} s" for c in choices)
    why = (
        f"grid {_by(chosen.grid)} with {_by(chosen.data_grid)} data blocks: the fewest workers "
        f"within {WITHIN - 1:.0%} of the least expected time under {model.name} ({seen})"
    )
    if len(choices) == 1:
        why = f"grid {_by(chosen.grid)} with {_by(chosen.data_grid)} data blocks"
    kept = f"survives any {SURVIVED} dead workers"
    return replace(chosen, explanation=(why, kept, *_codes(chosen)))


def _families(
    code: str, options: dict[str, Any], left: Factor, right: Factor
) -> tuple[CodeFamily, CodeFamily]:
    names = code.split(",")
    if len(names) > 2 or any(name not in (AUTO, *CODE_NAMES) for name in names):
        raise InvalidCode(
            f"code must be one of {', '.join((AUTO, *CODE_NAMES))}, or two of them with a comma "
            f"between for A and B, got {code!r}"
        )
    if any(name in APPROXIMATE for name in names):
        raise InvalidCode(f"code {code!r} decodes approximately: a grid needs exact lines")
    if options and (len(names) == 2 or names[0] == AUTO):
        raise PlanRefused("options", ", ".join(options), None, "they need one code for both sides")
    first, second = names[0], names[-1]
    return line_family(first, options, left.dtype), line_family(second, options, right.dtype)


def _given(
    families: tuple[CodeFamily, CodeFamily], grid: Pair, data_grid: Pair
) -> tuple[GridLine, GridLine]:
    lines = []
    for family, workers, blocks in zip(families, grid, data_grid, strict=True):
        if not 1 <= blocks <= workers:
            raise PlanRefused(
                "data_blocks", _by(data_grid), None, f"at least 1 and at most the grid {_by(grid)}"
            )
        same = CodeFamily("uncoded", {}, "as many data blocks as workers")
        lines.append(GridLine(same if blocks == workers else family, workers, blocks))
    return lines[0], lines[1]


def _candidates(
    left: Factor,
    right: Factor,
    families: tuple[CodeFamily, CodeFamily],
    grid: Pair | None,
    data_grid: Pair | None,
) -> Iterator[tuple[GridLine, GridLine]]:
    uncoded = [family.name == "uncoded" for family in families]
    for shares in shares_of(SURVIVED):
        if any(t and plain for t, plain in zip(shares, uncoded, strict=True)):
            continue
        both = all(shares) or any(uncoded)
        if grid is not None or data_grid is not None:
            if not both and min(grid or data_grid or (1, 1)) > 1:
                continue
            size = line_of_workers if grid is not None else line_of_blocks
            sizes = grid or data_grid or (1, 1)
            lines = [size(f, n, t) for f, n, t in zip(families, sizes, shares, strict=True)]
            yield from _fitting(left, right, lines)
        elif both or 1 in (left.rows, right.rows):
            yield from _sides(left, right, families, shares)


def _sides(
    left: Factor, right: Factor, families: tuple[CodeFamily, CodeFamily], shares: Pair
) -> Iterator[tuple[GridLine, GridLine]]:
    """Grids whose blocks of A and B are about as large: that reads least for the same product."""
    sides = SIDES if all(shares) else (1, *SIDES)
    lines = [
        [line for n in sides if (line := line_of_workers(f, n, t)) is not None]
        for f, t in zip(families, shares, strict=True)
    ]
    fitting = [
        [line for line in of if line.data_blocks <= factor.rows]
        for of, factor in zip(lines, (left, right), strict=True)
    ]
    for first in fitting[0]:
        height = left.rows / first.data_blocks

        def unlike(line: GridLine, height: float = height) -> float:
            return abs(math.log(right.rows / line.data_blocks / height))

        most = [line for line in fitting[1] if line.workers * first.workers <= MOST_WORKERS]
        if most:
            yield first, min(most, key=unlike)


def _fitting(
    left: Factor, right: Factor, lines: list[GridLine | None]
) -> Iterator[tuple[GridLine, GridLine]]:
    first, second = lines
    if first is None or second is None:
        return
    if first.data_blocks <= left.rows and second.data_blocks <= right.rows:
        yield first, second


def _check_rows(factors: tuple[Factor, Factor], lines: tuple[GridLine, GridLine]) -> None:
    for what, factor, line in zip(("rows of A", "columns of B"), factors, lines, strict=True):
        if line.data_blocks > factor.rows:
            raise PlanRefused(
                "data_blocks",
                line.data_blocks,
                factor.rows,
                f"more blocks than the {factor.rows} {what}",
            )


def _nothing_fits(
    left: Factor,
    right: Factor,
    families: tuple[CodeFamily, CodeFamily],
    grid: Pair | None,
    data_grid: Pair | None,
) -> PlanRefused:
    names = " and ".join(family.name for family in families)
    if grid is not None:
        fits = next(
            (_by((n, n)) for n in SIDES if n > min(grid) and n <= min(left.rows, right.rows)), None
        )
        reason = (
            f"no {names} code of that size survives any {SURVIVED} dead workers with matrices of "
            f"{left.rows} rows and {right.rows} columns; give data_blocks too, and nothing is "
            "promised"
        )
        return PlanRefused("grid", _by(grid), fits, reason)
    if data_grid is not None:
        fits = _by((min(data_grid[0], left.rows), min(data_grid[1], right.rows)))
        reason = f"more blocks than the {left.rows} rows of A or the {right.rows} columns of B"
        return PlanRefused("data_blocks", _by(data_grid), fits, reason)
    reason = f"no grid of {names} codes survives any {SURVIVED} dead workers; give grid and blocks"
    return PlanRefused("code", names, None, reason)


def _sizes(lines: tuple[GridLine, GridLine]) -> tuple[int, ...]:
    return tuple(size for line in lines for size in (line.workers, line.data_blocks))


def _codes(choice: GridChoice) -> Iterator[str]:
    for side, line in (("A", choice.left), ("B", choice.right)):
        if line.family.why:
            yield f"code of {side} = {line.family}: {line.family.why}"


def _by(pair: Pair) -> str:
    return f"{pair[0]}x{pair[1]}"
