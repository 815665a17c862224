"""The error of the estimator T = (1/m) sum z_i y_i^T for codes of one or two Hadamard rounds.

T - Y = M Y with M = (1/m) Z_S^T Z_S - I on the data slots. The mean error over codes has a closed
form; the bar for the set at hand follows :func:`polarcodes.error_bar.upper_relative_error`, whose
derivation applies with B = M M^T of this transform.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from polarcodes import error_bar
from polarcodes.error_bar import chi_square_ratio
from polarcodes.rounds import Rounds

_DENSE_ORDER = 256  # up to here M itself is cheap: some milliseconds
_SPECTRAL_ORDER = 16  # up to here the signs take too few values for a quantile to mean anything


def error_factor(rounds: Rounds, data_blocks: int, spread: float) -> float:
    """Return c in the relative mean squared error c (N-m) / (m (N-1)) over codes and sets.

    Sampling answers without replacement gives c = mean_i |z_i|^2 |y_i|^2 / |Y|^2 - 1 for any
    G^T G = N I. Over signs and slots the first term is q + (s - 1) (N - q) / (N - 1) with
    q = E G_ij^4: 1 for one round; 3 - 2/N for two, where G_ij is a sum of N random signs over
    sqrt(N). With rotated stages, t of them in the second round, the terms have sizes of their own,
    q = 3 (1 + 2 k^2 (1 + k)^(t-1) / N) - 2 (1 + k)^(t+1) / N with k = E cos^2 of twice an angle.
    """
    order = int(rounds.order)
    if rounds.plain:
        fourth = 1.0
    elif rounds.angles is None:
        fourth = 3.0 - 2.0 / order
    else:
        k = 0.5 - math.sin(4 * spread) / (8 * spread)
        t = len(rounds.angles) - 1
        fourth = 3.0 + (6 * k * k * (1 + k) ** (t - 1) - 2 * (1 + k) ** (t + 1)) / order
    return fourth + (data_blocks - 1) * (order - fourth) / (order - 1) - 1


def upper_relative_error(rounds: Rounds, slots: NDArray[np.intp], rows: NDArray[np.intp]) -> float:
    """Return a bound that ||T - Y|| / ||Y|| exceeds with probability 5 % at most.

    Up to N = 16 the spectral norm of M: a bound for every Y. Up to N = 256 from M itself; above,
    one round in closed form, two rounds from the moments of a random orthogonal matrix.
    """
    order, arrived, blocks = rounds.order, rows.size, slots.size
    if arrived == 0:
        return math.inf
    if arrived == order:
        return 0.0
    if order <= _DENSE_ORDER:
        return _dense(rounds, slots, rows)
    if rounds.plain:
        return error_bar.upper_relative_error(order, slots, rows)
    erased = order - arrived
    mean = (blocks + 1) * erased / (arrived * order)
    # B_kk adds up s squares of normal entries: the largest of s such sums is below four sigmas.
    worst = mean * (1 + 4 * math.sqrt(2 / blocks))
    squares = order * (erased / arrived) ** 2
    fours = erased * order * (erased - arrived) ** 2 / arrived**3 - squares
    share = blocks / order
    beta_squared = (squares * share**3 + max(0.0, fours) * share**4) / blocks**2
    return _bound(order, arrived, blocks, mean, worst, beta_squared)


def _dense(rounds: Rounds, slots: NDArray[np.intp], rows: NDArray[np.intp]) -> float:
    received = np.empty((slots.size, rows.size))
    rounds.adjoint(np.eye(rows.size), received, at=rows, take=slots)
    error = received @ received.T / rows.size - np.eye(slots.size)
    if rounds.order <= _SPECTRAL_ORDER:
        return float(np.linalg.norm(error, 2))
    squared = error @ error
    diagonal = np.diag(squared)
    beta_squared = float(np.sum(squared**2) - np.sum(diagonal**2)) / slots.size**2
    mean, worst = float(diagonal.mean()), float(diagonal.max())
    return _bound(rounds.order, rows.size, slots.size, mean, worst, beta_squared)


def _bound(
    order: int, arrived: int, blocks: int, mean: float, worst: float, beta_squared: float
) -> float:
    freedom = max(1.0, mean * mean / beta_squared) if beta_squared > 0 else math.inf
    cap = max(1.0, order / arrived - 1.0)
    return min(cap, math.sqrt(max(worst, mean * chi_square_ratio(freedom))))
