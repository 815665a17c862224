"""How far the anytime estimate is from the product: closed forms that need no ground truth.

T = (1/m) sum_{i in S} z_i y_i^T has error (G - I) Y with G = (1/m) sum_{i in S} z_i z_i^T. For the
Hadamard code G_kl = d_k d_l g(k xor l) with g(c) = (1/m) sum_{i in S} (-1)^<i,c>, the transform of
the indicator of S: given S, only the signs D are random.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from polarcodes.transform import butterflies, hadamard

_DENSE_ORDER = 8  # up to here the signs take too few values for a quantile to mean anything


def mean_square_error(order: int, data_blocks: int, arrived: int) -> float:
    """Return v = (s-1)(N-m) / (m(N-1)): the relative mean squared error over a uniform S.

    Exact for any product and any +-1 code with G^T G = N I (arXiv 2309.00682); inf at m = 0.

    >>> round(mean_square_error(512, 384, 256) ** 0.5, 2)
    0.87
    """
    if arrived == 0:
        return math.inf
    return (data_blocks - 1) * (order - arrived) / (arrived * (order - 1))


def upper_relative_error(order: int, slots: NDArray[np.intp], workers: NDArray[np.intp]) -> float:
    """Return a bound that ||T - Y|| / ||Y|| exceeds with probability 5 % at most, whatever Y is.

    The derivation, for the given S and random signs. With M = G - I on the data slots and
    B = M M^T, the squared error is sum_k B_kk ||Y_k||^2 + sum_{k != k'} B_kk' <Y_k, Y_k'>, where
    every term of the second sum carries the random sign d_k d_k'.

    1. *Mean* over signs: at most max_k B_kk ||Y||^2, with equality when the energy lies in the
       worst block. B_kk = sum_{l != k} g(k xor l)^2 over data slots l: a XOR convolution.
    2. *Spread*: the variance is 2 sum_{k != k'} B_kk'^2 <Y_k, Y_k'>^2, largest for a product of
       rank one (one column), where <Y_k, Y_k'>^2 = ||Y_k||^2 ||Y_k'||^2. For energy spread over the
       blocks it is then 2 beta^2 ||Y||^4 with beta^2 = sum_{k != k'} B_kk'^2 / s^2, given by
       :func:`off_diagonal_square`.
    3. *Quantile*: such a form in signs behaves like a chi-square with nu = (tr B / s)^2 / beta^2
       degrees of freedom, divided by nu: nu = 1 one answer short of all, because the error is then
       one random sum times a fixed vector; nu of the order of N half way. Its quantile at two
       standard deviations (97.7 %) is taken instead of the 95 % one, and nu is lowered by the
       factor 1 - 2/s. The margin pays for sums of few signs, which are less regular than normal
       ones: of all (sum_k a_k d_k)^2 with sum a_k^2 = 1 the worst 95 % quantile is 5 (five equal
       blocks), against 3.84 for the chi-square with one degree of freedom and 5.1 here.
    4. *Cap*: ||G - I|| <= max(1, N/m - 1) always, since G = (N/m) times a compressed projection.

    Up to N = 8 the spectral norm of G - I itself is returned: a bound for every Y.
    Returns inf at m = 0, 0 at m = N or s = 1. O(N log N).
    """
    arrived, blocks = workers.size, slots.size
    if arrived == 0:
        return math.inf
    if arrived == order or blocks == 1:
        return 0.0
    if order <= _DENSE_ORDER:
        rows = hadamard(order)[np.ix_(workers, slots)]
        return float(np.linalg.norm(rows.T @ rows / arrived - np.eye(blocks), 2))
    cap = max(1.0, order / arrived - 1.0)
    gram = _transform(_indicator(order, workers)) / arrived
    squares = gram * gram
    squares[0] = 0.0
    spectrum = _transform(_indicator(order, slots))
    diagonal = (_transform(_transform(squares) * spectrum) / order)[slots]
    mean = float(diagonal.mean())
    beta_squared = off_diagonal_square(order, arrived, blocks, float(squares @ squares), spectrum)
    freedom = math.inf
    if beta_squared > 0:
        freedom = max(1.0, (1 - 2 / blocks) * (mean * blocks) ** 2 / beta_squared)
    worst = max(float(diagonal.max()), mean * chi_square_ratio(freedom))
    return min(cap, math.sqrt(worst))


def off_diagonal_square(
    order: int, arrived: int, blocks: int, fourth: float, spectrum: NDArray[np.float64]
) -> float:
    """Return sum over data slots k != k' of B_kk'^2, averaged over where the slots lie.

    Over all N slots M is (N/m) P - I with P a projection of rank m, so the sum is
    Q = e N (e - m)^2 / m^3 with e = N - m. It consists of products M_kl M_lk' M_k'l' M_l'k. Those
    with l = l' sum to R = N ((e/m)^2 - sum_c g(c)^4), and those with l' = k xor k' xor l to R
    again, because |M_kl| depends on k xor l only and the signs cancel; the rest is Q - 2 R. Each
    part is scaled by the share of its index tuples that lie in the data slots.

    ``fourth`` is sum_c g(c)^4 over c != 0, ``spectrum`` the transform of the slots' indicator.
    """
    erased = order - arrived
    total = erased * order * (erased - arrived) ** 2 / arrived**3
    triple_sum = order * ((erased / arrived) ** 2 - fourth)
    triples = blocks * (blocks - 1) * (blocks - 2)
    all_triples = order * (order - 1) * (order - 2)
    # Ordered (k, l, k', l') in the slots with XOR 0, less those that pair up equal indices.
    xor_zero = float(np.mean(spectrum**4)) - blocks * (3 * blocks - 2)
    rest = triples * (blocks - 3) - xor_zero
    all_rest = all_triples * (order - 4)
    return (
        triple_sum * (triples + xor_zero) / all_triples + (total - 2 * triple_sum) * rest / all_rest
    )


def _indicator(order: int, members: NDArray[np.intp]) -> NDArray[np.float64]:
    flags = np.zeros(order)
    flags[members] = 1.0
    return flags


def _transform(values: NDArray[np.float64]) -> NDArray[np.float64]:
    column = values.reshape(-1, 1).copy()
    result: NDArray[np.float64] = butterflies(column, np.empty_like(column))
    return result.reshape(-1)


def chi_square_ratio(freedom: float) -> float:
    """Return the quantile at two standard deviations of chi-square over its degrees of freedom.

    Wilson and Hilferty's cube: exact to 1.5 % down to one degree of freedom.
    """
    if math.isinf(freedom):
        return 1.0
    step = 2.0 / (9.0 * freedom)
    return float((1.0 - step + 2.0 * math.sqrt(step)) ** 3)
