"""Schedules that a search found for the paper's delays, as data.

Found by `python scripts/search_schedules.py` (seed 0, delays 0.01 + Exp(10) seconds per task), and
here only because they beat CPGC, RCSC, UC-MMC and MCC on rounds they were not searched on. Each
line is a codeword of worker 1 as signed shifts, "+0 -3" for W_1 - W_4; worker k's is shifted by k.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polarcodes.errors import InvalidCode
from polarcodes.schedules import checks
from polarcodes.schedules.circulant import circulant_coefficients

# (K, r): tolerance: the r codewords of worker 1. Comments: mean seconds on the held-out rounds.
FOUND: dict[tuple[int, int], dict[float, tuple[str, ...]]] = {
    (20, 3): {
        0.0: (  # 0.0892; uc-mmc 0.2064, mcc 0.1562, cpgc 0.1508, rcsc 0.1363
            "+0",
            "-0 -1 +2 +3 +5 +7 -8 +9 -10 -12 -13 -15 +18 +19",
            "+0 -3 +4 -5 -6 +7 +9 +11 -12 -13 -16 +18",
        ),
        0.05: (  # 0.0891; uc-mmc 0.1561, mcc 0.1562, cpgc 0.1218, rcsc 0.1118
            "+0",
            "+1 +2 +3 +4 -8 -9 +12 +13 +14 +15 -16 +17 -18 +19",
            "-0 +1 +2 -3 +4 +5 -6 +9 -13 +15 +16 -18",
        ),
        0.1: (  # 0.0892; uc-mmc 0.1292, mcc 0.1562, cpgc 0.1070, rcsc 0.0992
            "+0",
            "-1 -2 +3 +4 -8 -9 +12 +13 +14 +15 -16 -18 +19",
            "-1 +2 -3 -4 -5 +6 +7 -10 -11 +14 +15 -19",
        ),
        0.15: (  # 0.0858; uc-mmc 0.1122, mcc 0.1562, cpgc 0.0966, rcsc 0.0918
            "+0",
            "-2 -12 +13 -18",
            "+0 -2 +6 -9 +12 -13",
        ),
        0.2: (  # 0.0821; uc-mmc 0.0989, mcc 0.1562, cpgc 0.0887, rcsc 0.0859
            "+0",
            "-10 +13 -18",
            "+0 -9 +10 +13",
        ),
        0.3: (  # 0.0743; uc-mmc 0.0799, mcc 0.1562, cpgc 0.0762, rcsc 0.0759
            "+0",
            "+10 -14",
            "-13 -14 -19",
        ),
    },
    (32, 4): {
        0.0: (  # 0.0804; uc-mmc 0.2053, mcc 0.1533, rcsc 0.1216
            "+0",
            "-2 +4 +5 +6 +8 +9 -15 +16 -18 +19 +22 +23 +24 -30 +31",
            "+3 +6 +7 +8 +12 +15 +18 +19 -20 +21 +23 +26 -27",
            "+0 +4 -5 -6 -9 -10 -13 +14 +15 -18 +21 +23 +30",
        ),
        0.05: (  # 0.0804; uc-mmc 0.1635, mcc 0.1533, rcsc 0.1045
            "+0",
            "-0 -1 +2 -4 +6 +8 -18 +20 +24 +27 +28 +30",
            "+6 +7 +8 +15 +18 +19 -20 -21 +23 -27 +28",
            "+0 +4 -5 -9 -10 -13 +14 +15 -17 -18 +21 +23 +30",
        ),
    },
}


def searched_coefficients(
    workers: int, load: int, *, tolerance: float = 0.0
) -> NDArray[np.float64]:
    """Return the (r, K, K) table found for K workers, r codewords and the nearest tolerance.

    Raises :class:`~polarcodes.errors.InvalidCode` for K and r that were not searched.

    >>> searched_coefficients(20, 3, tolerance=0.3).shape
    (3, 20, 20)
    """
    K, r = checks.workers_and_load(workers, load)
    share = checks.tolerance(tolerance)
    if (K, r) not in FOUND:
        known = ", ".join(f"workers={k} load={t}" for k, t in sorted(FOUND))
        raise InvalidCode(
            f"the schedule 'searched' is known for {known}; got workers={K} load={r}: find one "
            "with polarcodes.schedules.search_schedule, or use 'rcsc'"
        )
    by_tolerance = FOUND[K, r]
    nearest = min(by_tolerance, key=lambda searched: (abs(searched - share), searched))
    return circulant_coefficients(K, [_base(word) for word in by_tolerance[nearest]])


def _base(word: str) -> list[tuple[int, float]]:
    return [(int(term[1:]), -1.0 if term[0] == "-" else 1.0) for term in word.split()]
