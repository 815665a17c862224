"""Random parts of codes from raw Philox words, which no NumPy release changes.

A seed and a stream give one sequence of 64-bit words; what is made of them is written out in the
manifest anyway.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def words(count: int, seed: int, stream: int = 0) -> NDArray[np.uint64]:
    """Return ``count`` words; streams of one seed are 2^192 counter values apart."""
    generator = np.random.Philox(seed, counter=[0, 0, 0, stream])
    return np.asarray(generator.random_raw(count))


def random_signs(count: int, seed: int, *, stream: int = 0) -> NDArray[np.int8]:
    """Return +-1 signs from the top bits of the words."""
    bits = words(count, seed, stream) >> np.uint64(63)
    signs = (1 - 2 * bits.astype(np.int8)).astype(np.int8)
    signs.flags.writeable = False
    return signs


def random_subset(order: int, count: int, seed: int, *, stream: int) -> NDArray[np.intp]:
    """Return ``count`` of 0..order-1, uniform, ascending: where the smallest words stand."""
    subset = np.sort(np.argsort(words(order, seed, stream), kind="stable")[:count])
    subset = subset.astype(np.intp)
    subset.flags.writeable = False
    return subset


def random_angles(
    shape: tuple[int, int], spread: float, seed: int, *, stream: int
) -> NDArray[np.float64]:
    """Return angles uniform in pi/4 +- ``spread``, in radians."""
    mantissas = words(shape[0] * shape[1], seed, stream) >> np.uint64(11)
    units = mantissas.astype(np.float64) * 2.0**-53
    angles: NDArray[np.float64] = np.pi / 4 + spread * (2.0 * units - 1.0)
    angles.flags.writeable = False
    return angles.reshape(shape)
