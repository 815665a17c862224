"""The sequential decoder of a polar code, compiled for one set S into level operations.

At a stage with outputs up = a + b and low = a - b (a and b are codewords of the two halves of the
inputs) the decoder knows some outputs. It forms 2a = up + low where both are known, completes 2a by
decoding the first half, then has every output whose partner is known (up = 2a - low). Where
neither is known it forms 2b = up - low elsewhere, completes it by decoding the second half, and
has up = (2a + 2b) / 2 and low = (2a - 2b) / 2 (arXiv 2309.00682, section III).

That is the textbook order (first half, re-encode, second half) written for codewords: decoding a
half completes its codeword, so nothing is ever re-encoded, a half whose outputs are all known is
left alone, and a half that is all frozen is zero. One inverse transform of the completed codeword
gives the data.

The pattern of S decides every step, so the steps are found once. Each is x + y or x - y, halved or
not, on rows of a workspace; those that no missing answer needs are dropped, the others are sorted
into levels whose steps do not depend on each other. The outermost stages involve nearly all
answers: there, sums and differences of answers that arrived are not steps but plain butterfly
stages over all rows, which need no indices and run three times as fast.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.intp]

# In this order the sums of a level are neighbours, and so are the halved steps.
ADD, HALF_ADD, HALF_SUBTRACT, SUBTRACT = range(4)

_DENSE_STAGES = 2  # of 1, 2 and 3 the fastest at N = 256 to 4096


def dense_stages(order: int) -> int:
    """Return how many butterfly stages run over all rows before the steps."""
    return min(_DENSE_STAGES, order.bit_length() - 1)


def first_step(order: int) -> int:
    """Return the workspace row that the first step writes; the row before it is zero."""
    return (dense_stages(order) + 1) * order + 1


@dataclass(frozen=True)
class LevelOperations:
    """Steps on the rows of a workspace.

    Rows 0..N-1 are the codeword, zero where answers are missing; with D = ``dense_stages(N)`` the
    next D N rows are its first D butterfly stages; the row after them, ``zero``, is zero. Step j
    writes row ``zero + 1 + j`` from rows ``first[j]`` and ``second[j]``. Row g of ``levels``
    holds five ascending bounds: steps ``levels[g, k]..levels[g, k + 1] - 1`` do operation k (add,
    add and halve, subtract and halve, subtract) and depend on earlier levels only. ``filled[i]`` is
    the row that holds the value of missing worker ``missing[i]``.
    """

    first: Ids
    second: Ids
    levels: Ids
    missing: Ids
    filled: Ids


class _Compiler:
    """Collects steps in order; value ids are workspace rows until they are scheduled."""

    def __init__(self, is_data: NDArray[np.bool_]) -> None:
        self._order = is_data.size
        self._data_before = np.concatenate(([0], np.cumsum(is_data)))
        self._blocks: list[tuple[int, Ids, Ids]] = []
        self._next = first_step(self._order)
        self._zero = self._next - 1

    def has_data(self, start: int, size: int) -> bool:
        return bool(self._data_before[start + size] > self._data_before[start])

    def emit(self, kind: int, first: Ids, second: Ids) -> Ids:
        """Append steps and return the ids of their results."""
        ids = np.arange(self._next, self._next + first.size)
        self._next += first.size
        self._blocks.append((kind, first, second))
        return ids

    def combine(self, kind: int, up: Ids, low: Ids, dense: Ids) -> Ids:
        """Return the ids of up + low or up - low: rows ``dense`` where both are dense rows."""
        if not dense.size or dense[-1] >= self._zero:
            return self.emit(kind, up, low)
        ids = dense.copy()
        later = np.maximum(up, low) >= self._zero
        ids[later] = self.emit(kind, up[later], low[later])
        return ids

    def complete(self, values: Ids, known: NDArray[np.bool_], start: int) -> None:
        """Fill in the ids of the unknown outputs of the subtree over slots from ``start`` on."""
        size = values.size
        if known.all():
            return
        if not self.has_data(start, size):
            values[~known] = self._zero
            return
        half = size // 2
        stage = (self._order // size).bit_length()
        dense = stage * self._order + start + np.arange(size)
        up, low = values[:half], values[half:]
        up_known, low_known = known[:half], known[half:]
        both = up_known & low_known
        sums = np.full(half, self._zero)
        if self.has_data(start, half):
            sums[both] = self.combine(ADD, up[both], low[both], dense[:half][both])
            self.complete(sums, both, start)
        only_low, only_up = low_known & ~up_known, up_known & ~low_known
        up[only_low] = self.emit(SUBTRACT, sums[only_low], low[only_low])
        low[only_up] = self.emit(SUBTRACT, sums[only_up], up[only_up])
        either = up_known | low_known
        neither = ~either
        if neither.any():
            differences = np.full(half, self._zero)
            if self.has_data(start + half, half):
                differences[either] = self.combine(
                    SUBTRACT, up[either], low[either], dense[half:][either]
                )
                self.complete(differences, either, start + half)
            up[neither] = self.emit(HALF_ADD, sums[neither], differences[neither])
            low[neither] = self.emit(HALF_SUBTRACT, sums[neither], differences[neither])

    def schedule(self, missing: Ids, filled: Ids) -> LevelOperations:
        """Drop what no missing answer needs and sort the rest into levels."""
        inputs = self._zero + 1
        needed = np.zeros(self._next, bool)
        level = np.zeros(self._next, np.intp)
        needed[filled] = True
        stop = self._next
        for _, first, second in reversed(self._blocks):
            begin = stop - first.size
            wanted = needed[begin:stop]
            needed[first[wanted]] = True
            needed[second[wanted]] = True
            stop = begin
        begin = inputs
        for _, first, second in self._blocks:
            level[begin : begin + first.size] = 1 + np.maximum(level[first], level[second])
            begin += first.size
        kind = np.concatenate([np.full(f.size, k) for k, f, _ in self._blocks] or [missing[:0]])
        first = np.concatenate([f for _, f, _ in self._blocks] or [missing[:0]])
        second = np.concatenate([s for _, _, s in self._blocks] or [missing[:0]])
        kept = np.flatnonzero(needed[inputs:])
        group = 4 * (level[inputs + kept] - 1) + kind[kept]
        order = np.argsort(group, kind="stable")
        kept, group = kept[order], group[order]
        row = np.arange(self._next)
        row[inputs + kept] = inputs + np.arange(kept.size)
        depth = group[-1] // 4 + 1 if kept.size else 0
        bounds = np.searchsorted(group, np.arange(4 * depth + 1))
        return LevelOperations(
            first=row[first[kept]],
            second=row[second[kept]],
            levels=bounds[4 * np.arange(depth)[:, None] + np.arange(5)],
            missing=missing,
            filled=row[filled],
        )


def compile_operations(is_data: NDArray[np.bool_], erased: NDArray[np.bool_]) -> LevelOperations:
    """Compile the decoder for the missing workers flagged in ``erased``.

    The pattern must be decodable. O(N log N) steps at most, found by array operations on each
    subtree that has something to fill in.
    """
    compiler = _Compiler(is_data)
    values = np.arange(is_data.size)
    values[erased] = -1
    compiler.complete(values, ~erased, 0)
    missing = np.flatnonzero(erased)
    return compiler.schedule(missing, values[missing])
