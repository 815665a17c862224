"""The hybrid estimator of polar codes: what sequential decoding has settled, and T for the rest.

With the blocks K that the sequential decoder reaches from S known exactly, their share is taken out
of the answers, and the others are estimated by T = (1/m) sum z_i y_i^T (arXiv 2309.00682) from what
is left. Which blocks are settled depends on S alone, and not on the signs: T stays unbiased, so the
hybrid is, with the smaller error of s' = s - |K| blocks instead of s. Derived here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.error_bar import mean_square_error, upper_relative_error
from polarcodes.kernels.code import KernelPolarCode
from polarcodes.kernels.error import EstimatorError
from polarcodes.least_squares import minimum_norm
from polarcodes.operator import GeneratorRows
from polarcodes.sequential_code import SequentialCode

Ids = NDArray[np.intp]


def hybrid_value(code: SequentialCode, workers: Ids, answers: NDArray[Any]) -> NDArray[Any]:
    """Return the s x L estimate from checked answers (m, L).

    Settled blocks are read from the least-norm solution, which has them exactly. Cost: that of
    least squares and two transforms a column.
    """
    rows = GeneratorRows(code, workers)
    settled = code.settled(workers)
    value = minimum_norm(rows, answers)
    value[~settled] = 0
    rest = code.estimate(workers, answers - rows.apply(value)).value
    rest[settled] = value[settled]
    return rest


def hybrid_error(code: SequentialCode, workers: Ids, metric: str) -> float:
    """Return the relative rms error of the hybrid from the answers of S.

    Vector: sqrt(s'/s v') with v' of s' blocks, for blocks of equal strength; inner products: the
    worst angle, c and the product meeting in the unsettled blocks.
    """
    rest = code.inputs[~code.settled(workers)]
    arrived, share = workers.size, rest.size / code.data_blocks
    if not rest.size:
        return 0.0
    if isinstance(code, KernelPolarCode):
        error = EstimatorError(code.transform, rest)
        square = error.square(arrived) if metric == "vector" else error.inner_square(arrived)
    elif metric == "vector":
        square = mean_square_error(code.workers, rest.size, arrived)
    else:
        square = 2 * (code.workers - arrived) / (arrived * (code.workers - 1))
    return math.sqrt(share * square)


def hybrid_upper(code: SequentialCode, workers: Ids) -> float:
    """Return the 95 % bound of the vector error: that of T on the unsettled blocks alone."""
    rest = code.inputs[~code.settled(workers)]
    if isinstance(code, KernelPolarCode):
        return EstimatorError(code.transform, rest).upper(code.positions[workers])
    return upper_relative_error(code.workers, rest, workers)
