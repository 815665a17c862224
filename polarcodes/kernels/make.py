"""Polar codes by their options: any N, kernels, stages, and what the data inputs are chosen for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.checks import integer
from polarcodes.code import ErasureCode
from polarcodes.errors import InvalidCode
from polarcodes.kernels import frozen
from polarcodes.kernels.code import KernelPolarCode, checked_kernels
from polarcodes.kernels.kernel import default_kernels, next_order
from polarcodes.polar import PolarCode
from polarcodes.randomness import random_signs, random_subset
from polarcodes.sequential_code import checked_epsilon

Ids = NDArray[np.intp]
Float = NDArray[np.float64]

RADICES: dict[str, tuple[int, ...]] = {"hadamard": (2,), "mixed": (2, 3)}
"""Families of kernels by name: the sizes that the order is made of."""


def make_polar(
    workers: int,
    data_blocks: int,
    seed: int = 0,
    *,
    epsilon: float | None = None,
    erasure: Any = None,
    times: Any = None,
    kernels: Any = None,
    stages: int | None = None,
) -> ErasureCode:
    """Make a polar code for any N of at least 2.

    Parameters
    ----------
    workers, data_blocks, seed : int
        N, s in 1..N, and where signs and punctured positions come from.
    epsilon : float, optional
        The share of missing answers that the inputs are chosen for; (N - s) / N by default.
    erasure : (N,) floats, optional
        The probability that worker i's answer is missing, instead of one for all.
    times : (n,) or (n, N) floats, optional
        A sample of every worker's time (of a distribution: its quantiles), or of each worker's. The
        inputs are chosen for the earliest moment at which the code decodes with probability one
        half, :func:`~polarcodes.kernels.frozen.decoding_moment`.
    kernels : optional
        ``"mixed"`` (the default): N' = 2^a 3^b with Hadamard kernels outside and DCT kernels
        inside; ``"hadamard"``: N' = 2^a, exact in integers; or a list of polarising matrices,
        outermost first, whose sizes multiply to N'. Where N' is not N it is the next such number,
        and N' - N random positions are punctured.
    stages : int, optional
        Stop the recursion after that many kernels (partial polarisation): encoding gets cheaper and
        more answers are needed. By default all.

    Raises InvalidCode. A power of two without ``kernels`` lists or ``stages`` is a
    :class:`~polarcodes.polar.PolarCode`, which also has the syndrome decoder.
    """
    count = integer("workers", workers, 2, 1 << 20)
    blocks = integer("data_blocks", data_blocks, 1, count)
    seed = integer("seed", seed, 0, None)
    if sum(option is not None for option in (epsilon, erasure, times)) > 1:
        raise InvalidCode("epsilon, erasure and times say the same thing: give one of them")
    if kernels is None:
        kernels = "mixed"
    if isinstance(kernels, str):
        if kernels not in RADICES:
            raise InvalidCode(f"kernels must be mixed, hadamard or a list, got {kernels!r}")
        order = next_order(count, RADICES[kernels])
        matrices = list(default_kernels(order))
    else:
        matrices = checked_kernels(kernels)
        order = math.prod(len(matrix) for matrix in matrices)
        if order < count:
            raise InvalidCode(
                f"the sizes of kernels must multiply to at least {count} workers, got {order}"
            )
    plain = isinstance(kernels, str) and stages is None and order == count == order & -order
    stages = integer("stages", len(matrices) if stages is None else stages, 1, len(matrices))
    sizes = tuple(len(matrix) for matrix in matrices[:stages])
    positions = random_subset(order, count, seed, stream=1)
    probabilities = _erasure(sizes, positions, order, blocks, epsilon, erasure, times)
    if plain and erasure is None and times is None:
        return PolarCode(count, blocks, seed, epsilon=epsilon)
    epsilon = float(probabilities.mean())
    inputs = frozen.data_inputs(sizes, positions, order, probabilities, blocks)
    if plain:
        return PolarCode(count, blocks, seed, epsilon=epsilon, slots=inputs)
    signs = random_signs(order, seed)
    return KernelPolarCode(seed, epsilon, matrices[:stages], inputs, positions, signs)


def _erasure(
    sizes: tuple[int, ...],
    positions: Ids,
    order: int,
    data_blocks: int,
    epsilon: float | None,
    erasure: Any,
    times: Any,
) -> Float:
    """Return the probability that each worker's answer is missing."""
    workers = positions.size
    if erasure is not None:
        return frozen.checked_erasure(erasure, workers)
    if times is not None:
        sample = frozen.checked_times(times, workers)
        moment = frozen.decoding_moment(sizes, positions, order, sample, data_blocks=data_blocks)
        return frozen.erasure_at(
            sample, min(moment, float(sample[np.isfinite(sample)].max())), workers
        )
    if epsilon is None:
        epsilon = (workers - data_blocks) / workers or 0.5 / workers  # with s = N all carry data
    return np.full(workers, checked_epsilon(epsilon))


def polar_from_manifest(manifest: dict[str, Any]) -> ErasureCode:
    """Rebuild a polar code of either class; raises InvalidManifest."""
    if "kernels" in manifest:
        return KernelPolarCode.from_manifest(manifest)
    return PolarCode.from_manifest(manifest)
