"""Which parameters an iteration moves, where it cannot move all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polarcodes.randomness import words

__all__ = ["block_places", "derived_seed"]

_BLOCKS, _DIRECTIONS, _EVALUATIONS = 1 << 40, 2 << 40, 3 << 40
STREAMS = {"blocks": _BLOCKS, "directions": _DIRECTIONS, "evaluations": _EVALUATIONS}


def derived_seed(seed: int, purpose: str, number: int) -> int:
    """A seed of 31 bits for something of an iteration; purposes never share one by design."""
    return int(words(1, seed, stream=STREAMS[purpose] + number)[0] >> np.uint64(33))


def block_places(parameters: int, size: int, seed: int, iteration: int) -> NDArray[np.intp]:
    """The places of the iteration's block, ascending, shape (size,).

    A pass visits every parameter: parameters are put in an order drawn for the pass and cut into
    blocks; the last block of a pass is filled up with parameters of the first.
    """
    if size == parameters:
        return np.arange(parameters, dtype=np.intp)
    blocks = -(-parameters // size)
    turn, block = divmod(iteration, blocks)
    order = np.argsort(words(parameters, seed, stream=_BLOCKS + turn), kind="stable")
    places = order[np.arange(block * size, (block + 1) * size) % parameters]
    return np.sort(places).astype(np.intp)
