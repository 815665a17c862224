"""Slow and obvious counterparts of what polarcodes does fast."""

from __future__ import annotations

import numpy as np


def sylvester(order: int) -> np.ndarray:
    """The Hadamard matrix by its definition, H[i, j] = (-1)^(number of ones in i AND j)."""
    return np.array([[(-1.0) ** bin(i & j).count("1") for j in range(order)] for i in range(order)])


def decodable(erased: list[bool], is_data: list[bool]) -> bool:
    """The sequential decoder's test, word for word as in the design notes."""
    if not any(is_data):
        return True
    if len(erased) == 1:
        return not erased[0]
    half = len(erased) // 2
    pairs = list(zip(erased[:half], erased[half:], strict=True))
    return decodable([a or b for a, b in pairs], is_data[:half]) and decodable(
        [a and b for a, b in pairs], is_data[half:]
    )


def arrivals_needed(ranks: np.ndarray, slots: np.ndarray) -> np.ndarray:
    """Answers needed until every data slot is reached, for each column of arrival ranks (N, T).

    The time of a stage's first input is the later of its two outputs, the second's the earlier.
    """
    if len(ranks) == 1:
        return ranks[0] + 1 if len(slots) else np.zeros(ranks.shape[1], int)
    half = len(ranks) // 2
    top, bottom = ranks[:half], ranks[half:]
    return np.maximum(
        arrivals_needed(np.maximum(top, bottom), slots[slots < half]),
        arrivals_needed(np.minimum(top, bottom), slots[slots >= half] - half),
    )


def decodable_order(code, rng: np.random.Generator) -> list[int]:
    """Workers in random order, cut at the first set that is decodable."""
    state = code.arrivals()
    order = rng.permutation(code.workers).tolist()
    for count, worker in enumerate(order, 1):
        state.add(worker)
        if state.decodable:
            return order[:count]
    raise AssertionError("all workers together must be decodable")


def sequential_order(code, rng: np.random.Generator) -> list[int]:
    """Workers in random order, cut at the first set that polar's sequential decoder takes."""
    state = code.arrivals()
    order = rng.permutation(code.workers).tolist()
    for count, worker in enumerate(order, 1):
        state.add(worker)
        if state.method == "sequential":
            return order[:count]
    raise AssertionError("all workers together must be decodable")
