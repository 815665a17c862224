"""The sequential decoder for any kernels, compiled for one set S into levels of small sums.

At a stage with kernel K the l outputs y = K u of every position are codewords' entries, some known.
Input c at a position with a set R of at least l - c known outputs solves

    K[R, c:] u[c:] = y_R - K[R, :c] u[:c]     (least squares; u[:c] are complete by then)

so it is one sum of known values. Its codeword is completed by recursion over the inputs' subtree,
and once all l inputs are complete the unknown outputs are y = K u. Decoding a subtree completes its
codeword, so nothing is re-encoded; one inverse transform of the completed codeword gives the data.
The pattern of S decides every sum, so they are found once; those that no missing answer needs are
dropped, the others sorted into levels whose sums do not depend on each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.intp]
Float = NDArray[np.float64]
Flags = NDArray[np.bool_]

_NEGLIGIBLE = 1e-13  # coefficients that are zero but for rounding


@dataclass(frozen=True)
class SumSteps:
    """Sums over the rows of a workspace.

    Rows 0..N'-1 are the codeword, row N' is zero, and step j writes row N' + 1 + j as the sum of
    ``coefficients[j, t]`` times row ``terms[j, t]``; unused terms stand last and are zero times
    row N'. Row g of ``levels`` starts with the first and the last step (exclusive) of a level, and
    goes on with the number of its steps that have more than t terms, t = 0, 1, ...: within a level
    they have ever fewer. ``filled[i]`` is the row that holds the value of position ``missing[i]``.
    """

    terms: Ids
    coefficients: Float
    levels: Ids
    missing: Ids
    filled: Ids


def compile_sums(kernels: Sequence[Float], is_data: Flags, known: Flags) -> SumSteps:
    """Compile the decoder for the ``known`` positions, whose pattern must be decodable.

    O(N' sum l_j) sums at most, of at most 2 l - 1 terms, found by array operations on each subtree
    that has something to fill in.
    """
    compiler = _Compiler(kernels, is_data)
    values = np.where(known, np.arange(is_data.size), -1)
    compiler.complete(values, known.copy(), 0, 0)
    missing = np.flatnonzero(~known)
    return compiler.schedule(missing, values[missing])


class _Compiler:
    """Collects steps in order; ids are workspace rows until they are scheduled."""

    def __init__(self, kernels: Sequence[Float], is_data: Flags) -> None:
        self._kernels = kernels
        self._inverses = [np.linalg.inv(kernel) for kernel in kernels]
        self._order = is_data.size
        self._data_before = np.concatenate(([0], np.cumsum(is_data)))
        self._width = max((2 * len(kernel) - 1 for kernel in kernels), default=1)
        self._blocks: list[tuple[Ids, Float]] = []
        self._next = self._order + 1

    def has_data(self, start: int, size: int) -> bool:
        return bool(self._data_before[start + size] > self._data_before[start])

    def emit(self, terms: Ids, weights: Float) -> Ids:
        """Append sums of rows ``terms`` (k, n), weighted alike, and return their ids (n,)."""
        used = np.flatnonzero(np.abs(weights) > _NEGLIGIBLE)
        ids = np.full((terms.shape[1], self._width), self._order)
        ids[:, : used.size] = terms[used].T
        coefficients = np.zeros((terms.shape[1], self._width))
        coefficients[:, : used.size] = weights[used]
        self._blocks.append((ids, coefficients))
        self._next += len(ids)
        return np.arange(self._next - len(ids), self._next)

    def complete(self, values: Ids, known: Flags, start: int, depth: int) -> None:
        """Fill in the ids of the unknown outputs of the subtree over inputs from ``start`` on."""
        if known.all():
            return
        if depth == len(self._kernels) or not self.has_data(start, values.size):
            values[~known] = self._order  # frozen: what is data is known where S decodes
            return
        kernel, size = self._kernels[depth], len(self._kernels[depth])
        inner = values.size // size
        outputs, there = values.reshape(size, inner), known.reshape(size, inner)
        patterns, which = np.unique(there, axis=1, return_inverse=True)
        which = which.reshape(-1)
        inputs = np.full((size, inner), self._order)
        for c in range(size):
            if not self.has_data(start + c * inner, inner):
                continue
            enough = np.zeros(inner, bool)
            for index, pattern in enumerate(patterns.T):
                rows = np.flatnonzero(pattern)
                if rows.size < size - c:
                    continue
                at = np.flatnonzero(which == index)
                weights = self._solve(depth, rows, c)
                terms = np.concatenate((outputs[np.ix_(rows, at)], inputs[:c, at]))
                inputs[c, at] = self.emit(terms, weights)
                enough[at] = True
            self.complete(inputs[c], enough, start + c * inner, depth + 1)
        for index, pattern in enumerate(patterns.T):
            at = np.flatnonzero(which == index)
            for r in np.flatnonzero(~pattern):
                outputs[r, at] = self.emit(inputs[:, at], kernel[r])

    def _solve(self, depth: int, rows: Ids, c: int) -> Float:
        """Return the weights of the outputs ``rows`` and of the inputs before c in input c."""
        kernel = self._kernels[depth]
        if rows.size == len(kernel):
            return np.concatenate((self._inverses[depth][c], np.zeros(c)))
        solution = np.linalg.pinv(kernel[rows, c:])[0]
        return np.concatenate((solution, -solution @ kernel[rows, :c]))

    def schedule(self, missing: Ids, filled: Ids) -> SumSteps:
        """Drop the steps that no missing answer needs and sort the others into levels."""
        first = self._order + 1
        width = self._width
        terms = np.concatenate([ids for ids, _ in self._blocks] or [np.empty((0, width), np.intp)])
        coefficients = np.concatenate([c for _, c in self._blocks] or [np.empty((0, width))])
        needed = np.zeros(self._next, bool)
        needed[filled] = True
        level = np.zeros(self._next, np.intp)
        spans, end = [], self._next
        for ids, _ in reversed(self._blocks):
            spans.append(slice(end - len(ids), end))
            needed[ids[needed[spans[-1]]].ravel()] = True
            end -= len(ids)
        for span, (ids, _) in zip(reversed(spans), self._blocks, strict=True):
            level[span] = level[ids].max(axis=1, initial=0) + 1
        kept = np.flatnonzero(needed[first:])
        count = np.count_nonzero(coefficients[kept], axis=1)
        order = np.lexsort((-count, level[first + kept]))
        kept, count = kept[order], count[order]
        row = np.arange(self._next)
        row[first + kept] = first + np.arange(kept.size)
        depth = level[first + kept]
        bounds = np.searchsorted(depth, np.arange(1, (depth[-1] if depth.size else 0) + 2))
        longer = [
            [np.count_nonzero(count[begin:stop] > t) for t in range(width)]
            for begin, stop in pairwise(bounds.tolist())
        ]
        levels = np.column_stack(
            (bounds[:-1], bounds[1:], np.array(longer, np.intp).reshape(-1, width))
        )
        return SumSteps(row[terms[kept]], coefficients[kept], levels, missing, row[filled])
