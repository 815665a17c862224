"""Peeling with inactivation: how to solve a sparse system of sums, found once for a set of sums.

A sum with one unknown block gives that block; taking it out of the other sums may leave one unknown
there (peeling, Luby 2002). When no such sum is left, inactivation puts a block aside as a symbol
and peeling goes on; in the end the sums that were not needed determine the symbols by a small dense
system (Lazaro, Liva and Bauch, "Inactivation Decoding of LT and Raptor Codes", arXiv 1706.05814).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.intp]
Float = NDArray[np.float64]

_CONDITION = 1e7  # of the dense system: beyond it the symbols are not determined in float64


@dataclass(frozen=True)
class Sums:
    """Sparse 0/1 rows: row i adds up the blocks ``blocks[starts[i] : starts[i + 1]]``."""

    starts: Ids
    blocks: Ids

    def row(self, index: int) -> list[int]:
        """Return the blocks of one sum."""
        return list(self.blocks[self.starts[index] : self.starts[index + 1]].tolist())

    def take(self, rows: Ids) -> Sums:
        """Return some of the rows."""
        parts = [self.blocks[self.starts[row] : self.starts[row + 1]] for row in rows]
        lengths = [0, *(part.size for part in parts)]
        blocks = np.concatenate(parts) if parts else self.blocks[:0]
        return Sums(np.cumsum(lengths), blocks)

    def __len__(self) -> int:
        return self.starts.size - 1


@dataclass(frozen=True)
class Peeling:
    """Blocks ``solved[j]`` from sums ``sources[j]`` in this order, after those of ``inactive``.

    ``core`` (k x r) gives the k inactive blocks from the r left-over sums ``spare``, each less what
    the solved blocks come to when the inactive ones are zero.
    """

    solved: Ids
    sources: Ids
    inactive: Ids
    spare: Ids
    core: Float


def peel(sums: Sums, blocks: int, *, inactivate: bool) -> Peeling | None:
    """Find the order for ``blocks`` unknowns; None when the sums do not determine them.

    O(edges) without inactivation; with k inactive blocks O(k edges + k^3) more.
    """
    members = [sums.row(index) for index in range(len(sums))]
    holders: list[list[int]] = [[] for _ in range(blocks)]
    for index, row in enumerate(members):
        for block in row:
            holders[block].append(index)
    unknown = [len(row) for row in members]
    last = [sum(row) for row in members]  # the unknown block, once one is left
    ready = [index for index, count in enumerate(unknown) if count == 1]
    open_blocks = [True] * blocks
    solved: list[int] = []
    sources: list[int] = []
    inactive: list[int] = []

    def close(block: int) -> None:
        open_blocks[block] = False
        for index in holders[block]:
            unknown[index] -= 1
            last[index] -= block
            if unknown[index] == 1:
                ready.append(index)

    left = blocks
    while left:
        while ready:
            index = ready.pop()
            if unknown[index] == 1:
                solved.append(last[index])
                sources.append(index)
                close(last[index])
                left -= 1
        if not left:
            break
        if not inactivate:
            return None
        block = max(
            (b for b in range(blocks) if open_blocks[b]),
            key=lambda b: sum(1 for index in holders[b] if unknown[index] > 1),
        )
        inactive.append(block)
        close(block)
        left -= 1
    used = set(sources)
    spare = [index for index in range(len(members)) if index not in used]
    order = np.array(solved, np.intp), np.array(sources, np.intp)
    if not inactive:
        return Peeling(*order, np.empty(0, np.intp), np.empty(0, np.intp), np.empty((0, 0)))
    core = _core(members, solved, sources, inactive, spare, blocks)
    if core is None:
        return None
    return Peeling(*order, np.array(inactive, np.intp), np.array(spare, np.intp), core)


def _core(
    members: list[list[int]],
    solved: list[int],
    sources: list[int],
    inactive: list[int],
    spare: list[int],
    blocks: int,
) -> Float | None:
    """Return the pseudo-inverse of the left-over sums as functions of the inactive blocks."""
    if len(spare) < len(inactive):
        return None
    terms = np.zeros((blocks, len(inactive)))
    terms[inactive, np.arange(len(inactive))] = 1.0
    for block, index in zip(solved, sources, strict=True):
        terms[block] = -sum(terms[other] for other in members[index] if other != block)
    system = np.array([terms[members[index]].sum(axis=0) for index in spare])
    left, sizes, right = np.linalg.svd(system, full_matrices=False)
    if sizes[-1] * _CONDITION <= max(sizes[0], 1.0):
        return None
    return np.asarray((right.T / sizes) @ left.T)
