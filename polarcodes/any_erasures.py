"""How many missing answers a code survives whichever they are: by looking at every set of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, islice
from math import comb

import numpy as np
from numpy.typing import NDArray

from polarcodes.code import ErasureCode

__all__ = ["GROWTH", "sturdy_code", "survived_by_any"]

GROWTH = 40.0
"""Largest growth of rounding errors, product over answers, of a set that counts as survived."""

_SETS = 1 << 14  # looked at together
_MOST_SETS = 1 << 20
_SINGULAR = 1e-12
_LEAST_SQUARES = ("hadamard", "mds", "polar", "replication", "uncoded")


def survived_by_any(code: ErasureCode, most: int, growth: float = GROWTH) -> int:
    """Return the largest t <= ``most`` such that any t missing answers leave the others decodable.

    Exhaustive: C(N, t) sets, at most 2^20. For codes whose decoders reach whatever least squares
    does (hadamard, mds, polar, replication, uncoded) with the growth of errors
    ||Z_S^+||_F sqrt(mean ||z_i||^2 / s) from a t x t system each: with A = Z^T Z, K = Z A^-1 Z^T,
    tr (Z_S^T Z_S)^-1 = tr A^-1 + tr (I - K_E)^-1 (Z A^-2 Z^T)_E. Other codes are asked.
    """
    largest = 0
    for erased in range(1, min(most, code.workers - code.data_blocks) + 1):
        if comb(code.workers, erased) > _MOST_SETS or not _survives(code, erased, growth):
            break
        largest = erased
    return largest


def sturdy_code(
    make: Callable[[int], ErasureCode],
    seed: int,
    erased: int,
    growth: float = GROWTH,
    seeds: int = 64,
) -> ErasureCode | None:
    """Return the code of the first of 64 seeds, from ``seed`` on, that survives any ``erased``.

    None if there is none. A random code fails for some set of few answers now and then.
    """
    for number in range(seed, seed + seeds):
        code = make(number)
        if survived_by_any(code, erased, growth) >= erased:
            return code
    return None


def _survives(code: ErasureCode, erased: int, growth: float) -> bool:
    if code.name not in _LEAST_SQUARES:
        everybody = set(range(code.workers))
        return all(
            code.decodable(sorted(everybody.difference(gone)), answer_error=1.0, tolerance=growth)
            for gone in combinations(range(code.workers), erased)
        )
    rows = code.generator()
    rows /= np.sqrt(np.mean(np.sum(rows**2, axis=1)) / code.data_blocks)
    squares, vectors = np.linalg.eigh(rows.T @ rows)
    if squares[0] <= _SINGULAR:
        return False
    whitened = rows @ vectors
    hat = (whitened / squares) @ whitened.T
    spread = (whitened / squares**2) @ whitened.T
    base = float(np.sum(1.0 / squares))
    for sets in _sets(code.workers, erased):
        square = sets[:, :, None], sets[:, None, :]
        left = np.eye(erased) - hat[square]
        if np.linalg.eigvalsh(left)[:, 0].min() <= _SINGULAR:
            return False
        more = np.trace(np.linalg.solve(left, spread[square]), axis1=1, axis2=2)
        if base + float(more.max()) > growth**2:
            return False
    return True


def _sets(workers: int, erased: int) -> Iterator[NDArray[np.intp]]:
    every = combinations(range(workers), erased)
    while chunk := list(islice(every, _SETS)):
        yield np.array(chunk, np.intp)
