"""Sizes of the two codes of a grid: how much redundancy any few dead workers take."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from coordinator.default_code import AUTO, CodeFamily
from polarcodes import ErasureCode, InvalidCode
from polarcodes.any_erasures import sturdy_code, survived_by_any

__all__ = [
    "SURVIVED",
    "GridLine",
    "counted",
    "line_family",
    "line_of_blocks",
    "line_of_workers",
    "shares_of",
]

SURVIVED = 4
"""Dead workers that the default grid survives, whichever they are."""

_MORE = 4  # redundant workers tried beyond those that an ideal code would need
_SEEDS, _FEW_SEEDS = 64, 4
_FLOAT64_GROWTH = 1e5  # of rounding errors, where answers have sixteen digits
_FEW_SETS = 64  # workers of a line up to which sets of more than two are looked at


@dataclass(frozen=True)
class GridLine:
    """One of the two codes: family, N_i and s_i, and how many of a line it survives by design.

    `survives` is None where the sizes were given: nothing is promised then. `code`: the code
    itself, of a matrix that is encoded already.
    """

    family: CodeFamily
    workers: int
    data_blocks: int
    survives: int | None = None
    code: ErasureCode | None = None

    @classmethod
    def of(cls, code: ErasureCode) -> GridLine:
        """The line of a matrix that is encoded; what it survives is counted."""
        family = CodeFamily(code.name, {}, "encoded already")
        return cls(family, code.workers, code.data_blocks, counted(code), code)

    def make(self, seed: int) -> ErasureCode:
        """The code; with a promise the first one from this seed on that keeps it.

        Raises `InvalidCode` where there is none.
        """
        if self.code is not None:
            return self.code
        wanted = self.survives or 0
        if wanted == 0:
            return self.family.make(self.workers, self.data_blocks, seed)
        found = _sturdy(self, seed)
        if found is None:
            raise InvalidCode(
                f"no {self.family} code of {self.workers} workers and {self.data_blocks} data "
                f"blocks that survives any {wanted} lost answers was found from seed {seed} on"
            )
        return found


def counted(code: ErasureCode) -> int:
    """How many lost answers of a line the code survives, up to 4; 2 in lines of 33 and more."""
    most = SURVIVED if code.workers <= _FEW_SETS // 2 else 2
    return survived_by_any(code, most) if code.workers <= _FEW_SETS else 0


def line_family(
    code: str, options: Mapping[str, Any], dtype: np.dtype[Any], other: np.dtype[Any]
) -> CodeFamily:
    """The family of one side: integers stay exact by default, floats get an estimate with a bar.

    Parities of integers cost digits that only answers in float64 have: the other side must not be
    coded in float32.
    """
    if code != AUTO:
        return CodeFamily(code, dict(options))
    if dtype.kind == "f" or (other.kind == "f" and other.itemsize < 8):
        return CodeFamily("hadamard", {}, "well conditioned, and any few answers give an estimate")
    return CodeFamily("mds", {"basis": "integer"}, f"sums of {dtype.name} stay exact integers")


def shares_of(survived: int) -> Iterator[tuple[int, int]]:
    """Pairs (t1, t2) with (t1 + 1)(t2 + 1) > survived, none of which could be smaller.

    A pattern that stops alternating decoding has more than t2 lost answers in each of its rows and
    more than t1 in each of its columns, hence (t1 + 1)(t2 + 1) of them at least.
    """
    for first in range(survived + 1):
        second = -(-(survived + 1) // (first + 1)) - 1
        if first == 0 or second < -(-(survived + 1) // first) - 1:
            yield first, second


def line_of_workers(family: CodeFamily, workers: int, survives: int, rows: int) -> GridLine | None:
    """The line of N_i workers with the most data blocks that survives any `survives` lost ones.

    None if there is none, or if those are more than `rows`.
    """
    return _line(family, survives, rows, workers=workers)


def line_of_blocks(
    family: CodeFamily, data_blocks: int, survives: int, rows: int
) -> GridLine | None:
    """The line of s_i data blocks, at most `rows`, with the fewest workers that does."""
    return _line(family, survives, rows, data_blocks=data_blocks)


def _line(
    family: CodeFamily, survives: int, rows: int, *, workers: int = 0, data_blocks: int = 0
) -> GridLine | None:
    size = workers or data_blocks
    if survives == 0:
        line = GridLine(CodeFamily("uncoded", {}, "not coded"), size, size, 0)
        return line if size <= rows else None
    least = survives + (survives > 2 and family.options.get("basis") != "integer")
    for redundant in range(least, survives + _MORE + size // 2):
        n = workers or data_blocks + redundant
        if not 1 <= n - redundant <= rows:
            return None
        line = GridLine(family, n, n - redundant, survives)
        try:
            if _sturdy(line, 0) is not None:
                return line
        except InvalidCode:
            continue
    return None


def _sturdy(line: GridLine, seed: int) -> ErasureCode | None:
    options = json.dumps(dict(line.family.options), sort_keys=True)  # hashable
    return _sturdy_code(
        line.family.name, options, line.workers, line.data_blocks, line.survives or 0, seed
    )


@lru_cache(maxsize=512)
def _sturdy_code(
    name: str,
    options: str,
    workers: int,
    data_blocks: int,
    survives: int,
    seed: int,
) -> ErasureCode | None:
    family = CodeFamily(name, json.loads(options))

    def make(number: int) -> ErasureCode:
        return family.make(workers, data_blocks, number)

    if family.options.get("basis") == "integer":  # nothing random; its answers are float64
        code = make(seed)
        return code if survived_by_any(code, survives, _FLOAT64_GROWTH) >= survives else None
    if survives > 2 and workers > _FEW_SETS // 2:  # too many sets: two more than needed
        code = make(seed)
        return code if workers - data_blocks >= survives + 2 else None
    return sturdy_code(make, seed, survives, seeds=_SEEDS if survives <= 2 else _FEW_SEEDS)
