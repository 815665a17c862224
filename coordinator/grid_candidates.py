"""Grids that a search for N1 x N2 and s1 x s2 tries: what both codes can have, and what fits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from coordinator.default_code import CodeFamily
from coordinator.grid_sizes import (
    SURVIVED,
    GridLine,
    line_of_blocks,
    line_of_workers,
    shares_of,
)
from coordinator.planned_pairs import Factor
from coordinator.refusals import PlanRefused

__all__ = ["GridSearch", "Lines", "Pair", "by"]

SIDES = (2, 3, 4, 6, 8, 12, 16, 24, 32)
MOST_WORKERS = 512  # below the default concurrency of an account

Pair = tuple[int, int]
Lines = tuple[GridLine, GridLine]


def by(pair: Pair) -> str:
    """Two sizes in words."""
    return f"{pair[0]}x{pair[1]}"


@dataclass(frozen=True)
class GridSearch:
    """Factors and families of both sides; `fixed`: the line of a side that is encoded already."""

    factors: tuple[Factor, Factor]
    families: tuple[CodeFamily, CodeFamily]
    fixed: tuple[GridLine | None, GridLine | None]

    def given(self, grid: Pair | None, data_grid: Pair | None) -> Lines | None:
        """The lines where nothing is left to choose; raises `PlanRefused` for what cannot be."""
        lines = []
        for side in (0, 1):
            fixed = self.fixed[side]
            if fixed is not None:
                self._check_fixed(side, fixed, grid, data_grid)
                lines.append(fixed)
            elif grid is not None and data_grid is not None:
                lines.append(self._sized(side, grid, data_grid))
        return (lines[0], lines[1]) if len(lines) == 2 else None

    def candidates(self, grid: Pair | None, data_grid: Pair | None) -> list[Lines]:
        """Different grids that survive any `SURVIVED` dead workers and have rows enough."""
        found: dict[tuple[int, ...], Lines] = {}
        for lines in self._all(grid, data_grid):
            sizes = tuple(size for line in lines for size in (line.workers, line.data_blocks))
            found.setdefault(sizes, lines)
        return list(found.values())

    def nothing_fits(self, grid: Pair | None, data_grid: Pair | None) -> PlanRefused:
        """Why there is no candidate."""
        names = " and ".join(family.name for family in self.families)
        left, right = self.factors
        if grid is not None:
            reason = (
                f"no {names} codes of that size survive any {SURVIVED} dead workers with A of "
                f"{left.rows} rows and B of {right.rows} columns; leave the grid out, or give the "
                "data blocks too, and nothing is promised"
            )
            return PlanRefused("grid", by(grid), None, reason)
        if data_grid is not None:
            fits = by((min(data_grid[0], left.rows), min(data_grid[1], right.rows)))
            reason = f"more blocks than the {left.rows} rows of A or the {right.rows} columns of B"
            return PlanRefused("data_blocks", by(data_grid), fits, reason)
        reason = f"no grid survives any {SURVIVED} dead workers; give the grid and the data blocks"
        return PlanRefused("code", names, None, reason)

    def _all(self, grid: Pair | None, data_grid: Pair | None) -> Iterator[Lines]:
        plain = [family.name == "uncoded" for family in self.families]
        free = any(plain) or any(line is not None for line in self.fixed)
        sizes = grid or data_grid
        for shares in shares_of(SURVIVED):
            both = all(shares) or free
            if any(t and uncoded for t, uncoded in zip(shares, plain, strict=True)):
                continue
            if sizes is None:
                if both or 1 in (self.factors[0].rows, self.factors[1].rows):
                    yield from self._alike(shares)
            elif both or 1 in sizes:
                lines = [self._line(side, shares[side], grid, data_grid) for side in (0, 1)]
                if lines[0] is not None and lines[1] is not None:
                    yield lines[0], lines[1]

    def _alike(self, shares: Pair) -> Iterator[Lines]:
        """Grids whose blocks of A and B are about as large: that reads least for a product."""
        sides = SIDES if all(shares) else (1, *SIDES)
        first, second = (self._lines(side, shares[side], sides) for side in (0, 1))
        left, right = self.factors
        for line in first:
            height = left.rows / line.data_blocks

            def unlike(other: GridLine, height: float = height) -> float:
                return abs(math.log(right.rows / other.data_blocks / height))

            fitting = [other for other in second if other.workers * line.workers <= MOST_WORKERS]
            if fitting:
                yield line, min(fitting, key=unlike)

    def _lines(self, side: int, survives: int, sides: tuple[int, ...]) -> list[GridLine]:
        fixed = self.fixed[side]
        sizes = sides if fixed is None else (fixed.workers,)
        lines = (self._line(side, survives, (n, n), None) for n in sizes)
        return [line for line in lines if line is not None]

    def _line(
        self, side: int, survives: int, grid: Pair | None, data_grid: Pair | None
    ) -> GridLine | None:
        fixed = self.fixed[side]
        if fixed is not None:
            return fixed if (fixed.survives or 0) >= survives else None
        family, rows = self.families[side], self.factors[side].rows
        if grid is not None:
            return line_of_workers(family, grid[side], survives, rows)
        return line_of_blocks(family, data_grid[side] if data_grid else 1, survives, rows)

    def _sized(self, side: int, grid: Pair, data_grid: Pair) -> GridLine:
        workers, blocks = grid[side], data_grid[side]
        if not 1 <= blocks <= workers:
            reason = f"at least 1 and at most the grid, {by(grid)}"
            raise PlanRefused("data_blocks", by(data_grid), None, reason)
        rows = self.factors[side].rows
        if blocks > rows:
            what = ("rows of A", "columns of B")[side]
            raise PlanRefused("data_blocks", blocks, rows, f"more blocks than the {rows} {what}")
        uncoded = CodeFamily("uncoded", {}, "as many data blocks as workers")
        return GridLine(uncoded if blocks == workers else self.families[side], workers, blocks)

    def _check_fixed(
        self, side: int, fixed: GridLine, grid: Pair | None, data_grid: Pair | None
    ) -> None:
        for name, asked, has in (
            ("grid", grid, fixed.workers),
            ("data_blocks", data_grid, fixed.data_blocks),
        ):
            if asked is not None and asked[side] != has:
                what = "AB"[side]
                raise PlanRefused(name, asked[side], has, f"{what} is encoded with {has} already")
