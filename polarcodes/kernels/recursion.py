"""Which inputs of a polar code are reached, when and how likely: one recursion for any kernels.

N' = l_1 ... l_t q positions; the outermost kernel's digit leads. Kernel j takes the l_j blocks of
its part of the index apart: input c = 0..l-1 at an inner position is there, given the inputs before
it, as soon as l - c of the l outputs at that position are. So availability, times and erasure
probabilities all follow from order statistics. The last factor q (``leaf``) is where the recursion
stops: q inputs that are q outputs. One kernel 2: (later, earlier); z- = 1 - (1-z)^2, z+ = z^2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
Float = NDArray[np.float64]


def reached_inputs(sizes: Sequence[int], known: Flags) -> Flags:
    """Return which inputs the sequential decoder reaches from the ``known`` outputs.

    ``known`` has shape (N',), or (N', T) for T patterns at once. O(N' log N') for each.

    >>> reached_inputs((2, 2), np.array([True, False, True, True])).tolist()
    [False, True, True, True]
    """
    flags = np.array(known, dtype=bool)
    for size, blocks in _stages(sizes, flags):
        count = blocks.sum(axis=1, dtype=np.intp)
        for c in range(size):
            blocks[:, c] = count >= size - c
    return flags


def input_times(sizes: Sequence[int], times: Float) -> Float:
    """Return when each input is reached, given when each output is: shape (N',) or (N', T)."""
    table = np.array(times, dtype=np.float64)
    for _, blocks in _stages(sizes, table):
        blocks[...] = np.sort(blocks, axis=1)[:, ::-1]
    return table


def input_log_odds(sizes: Sequence[int], erasure: Float) -> Float:
    """Return log(z / (1 - z)) of every input when output i is erased with probability erasure[i].

    Independent outputs; 0 and 1 are allowed and give -inf and inf. log z and log(1 - z) run side by
    side as sums of positive terms, so that no digits are lost and thousands of inputs do not tie
    where z rounds to 0 or 1. O(N' sum l_j).

    >>> odds = np.exp(input_log_odds((3,), np.full(3, 0.5)))
    >>> (odds / (1 + odds)).round(9).tolist()
    [0.875, 0.5, 0.125]
    """
    log_z, log_q = input_logarithms(sizes, erasure)
    odds: Float = log_z - log_q
    return odds


def input_logarithms(sizes: Sequence[int], erasure: Float) -> tuple[Float, Float]:
    """Return log z and log(1 - z) of every input: see :func:`input_log_odds`."""
    with np.errstate(divide="ignore"):
        log_z, log_q = np.log(erasure), np.log1p(-np.asarray(erasure, np.float64))
    pairs = zip(_stages(sizes, log_z), _stages(sizes, log_q), strict=True)
    for (size, lost), (_, arrived) in pairs:
        # counts[a]: log probability that exactly a outputs of this position have arrived.
        counts = [np.zeros_like(lost[:, 0])]
        for r in range(size):
            stay = [term + lost[:, r] for term in counts]
            move = [term + arrived[:, r] for term in counts]
            inner = [np.logaddexp(a, b) for a, b in zip(stay[1:], move[:-1], strict=True)]
            counts = [stay[0], *inner, move[-1]]
        for c in range(size):
            lost[:, c] = np.logaddexp.reduce(counts[: size - c], axis=0)
            arrived[:, c] = np.logaddexp.reduce(counts[size - c :], axis=0)
    return log_z, log_q


class SettledTree:
    """The number of outputs known at every position of every stage, fed one arrival at a time.

    At a position where a outputs are known the next one settles input l - 1 - a: one walk down the
    stages, and exactly one input of the code for each arrival.
    """

    def __init__(self, sizes: Sequence[int], order: int) -> None:
        self._sizes = tuple(sizes)
        self._order = order
        self._counts: list[list[int]] = []
        groups = order
        for size in self._sizes:
            self._counts.append([0] * (groups // size * (order // groups)))
            groups //= size

    def settle(self, position: int) -> int:
        """Record that an output is known; return the one input that this settles."""
        base, width = 0, self._order
        for size, counts in zip(self._sizes, self._counts, strict=True):
            width //= size
            inner = position % width
            index = base // size + inner
            base += (size - 1 - counts[index]) * width
            counts[index] += 1
            position = inner
        return base + position


def _stages(sizes: Sequence[int], values: NDArray[Any]) -> list[tuple[int, NDArray[Any]]]:
    """Return views (outer, l, rest) of ``values``, outermost stage first; edit them in order."""
    views, outer = [], 1
    for size in sizes:
        views.append((size, values.reshape(outer, size, -1)))
        outer *= size
    return views
