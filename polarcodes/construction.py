"""Which slots of the transform carry data: the erasure recursion of polar codes.

One 2 x 2 kernel turns two inputs of erasure probability z into a first one that needs both outputs,
``z- = 1 - (1 - z)^2``, and a second one that needs either, ``z+ = z^2``. Recursing over log2 N
levels gives N slots in natural (Sylvester) order; the s least likely to be erased carry data, the
others are frozen to zero (arXiv 2309.00682, section III).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def erasure_log_odds(workers: int, epsilon: float) -> NDArray[np.float64]:
    """Return log(z / (1 - z)) of the N slots, in natural order.

    The recursion runs on log z and log(1 - z) side by side: z- = z (2 - z) and
    1 - z+ = (1 - z)(1 + z) lose no digits, where z itself would round to 0 or 1 and leave
    thousands of slots tied. O(N).

    >>> odds = np.exp(erasure_log_odds(4, 0.5))
    >>> (odds / (1 + odds)).round(4).tolist()
    [0.9375, 0.5625, 0.4375, 0.0625]
    """
    log_z = np.array([np.log(epsilon)])
    log_q = np.array([np.log1p(-epsilon)])
    while log_z.size < workers:
        z, q = np.exp(log_z), np.exp(log_q)
        log_z = np.column_stack((log_z + np.log1p(q), 2 * log_z)).ravel()
        log_q = np.column_stack((2 * log_q, log_q + np.log1p(z))).ravel()
    odds: NDArray[np.float64] = log_z - log_q
    return odds


def data_slots(workers: int, data_blocks: int, epsilon: float) -> NDArray[np.intp]:
    """Return the s slots that carry data, ascending; the others are frozen.

    Equal probabilities (to nine decimals of the log odds, so that the last bit of a logarithm has
    no say) go to the higher slot: where two slots compare at all, it never decodes later.

    >>> data_slots(8, 4, 0.5).tolist()
    [3, 5, 6, 7]
    """
    odds = erasure_log_odds(workers, epsilon).round(9)
    best_first = np.lexsort((-np.arange(workers), odds))
    return np.sort(best_first[:data_blocks]).astype(np.intp)
