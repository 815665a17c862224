"""Which inputs a sequential decoder reaches: the erasure pattern pushed through the transform.

One 2 x 2 stage maps erased outputs (e1, e2) to erased inputs: the first input needs both outputs,
e1 OR e2; the second, once the first is known, needs either, e1 AND e2. Recursing on both halves
gives one flag for each slot, and S is decodable when no data slot is erased (arXiv 2309.00682).

An arrival settles exactly one slot: in a pair of outputs the earlier answer settles the second
input, the later one the first. So the arrivals state walks one path of log2 N nodes down the tree.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]


def erased_inputs(erased: Flags) -> Flags:
    """Return the slots that stay erased when the workers flagged in ``erased`` are missing.

    ``erased`` has shape (N,), or (N, T) for T patterns at once. O(N log N) for each.

    >>> erased_inputs(np.array([False, True, False, False])).tolist()
    [True, False, False, False]
    """
    flags = np.array(erased, dtype=bool)
    order = flags.shape[0]
    half = order // 2
    while half:
        pairs = flags.reshape(order // (2 * half), 2, half, -1)
        either, both = pairs[:, 0] | pairs[:, 1], pairs[:, 0] & pairs[:, 1]
        pairs[:, 0], pairs[:, 1] = either, both
        half //= 2
    return flags


class ErasureTree:
    """The erased flags of every stage, updated one arrival at a time in log2 N steps."""

    def __init__(self, order: int) -> None:
        self._order = order
        self._stages = [bytearray(b"\x01") * order for _ in range(order.bit_length())]

    def settle(self, worker: int) -> int:
        """Clear an erased output and return the one slot that this settles."""
        base, half = 0, self._order // 2
        position = worker
        for stage in self._stages[:-1]:
            stage[base + position] = 0
            partner_erased = stage[base + (position ^ half)]
            position &= half - 1
            if partner_erased:
                base += half
            half //= 2
        self._stages[-1][base] = 0
        return base
