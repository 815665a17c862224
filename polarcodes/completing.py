"""Workers whose answers would complete a set, for a code that can only say yes or no."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]


def completing_workers(erased: Flags, decodable: Callable[[Flags], bool]) -> list[int]:
    """Return missing workers that together make S decodable, none of which can be left out.

    ``decodable`` judges a pattern of erased workers and must accept the empty one. Dropping runs
    of workers by bisection keeps the number of patterns near the size of the answer times log2 N.
    """
    flags = np.array(erased, dtype=bool)
    missing = np.flatnonzero(flags)
    flags[:] = False
    needed: list[int] = []
    runs = [missing]
    while runs:
        run = runs.pop()
        flags[run] = True
        if decodable(flags):
            continue
        flags[run] = False
        if len(run) == 1:
            needed.append(int(run[0]))
        else:
            middle = len(run) // 2
            runs += [run[middle:], run[:middle]]
    return sorted(needed)
