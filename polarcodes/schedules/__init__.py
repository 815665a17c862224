"""Schedules by name: what each worker computes, in which order, when it sends several messages.

>>> schedule = make_schedule("cpgc", workers=4, load=2)
>>> print(schedule)
cpgc: 4 workers, 2 codewords each, 4 tasks; every result is sent at once
worker      1      2      3      4
row 1      W1     W2     W3     W4
row 2   W3+W4  W1+W3  W2+W4  W1+W2
>>> state = schedule.recovery()
>>> for worker, message in ((0, 0), (1, 0), (1, 1)):  # worker 2 was fast: W1, W2, W1+W3
...     _ = state.add(worker, message)
>>> state.recovered, state.complete(tolerance=0.25)
((0, 1, 2), True)
>>> state.weights().matrix
array([[ 1.,  0.,  0.],
       [ 0.,  1.,  0.],
       [-1.,  0.,  1.]])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarcodes.errors import InvalidCode
from polarcodes.schedules.circulant import rcsc_coefficients, uc_mmc_coefficients
from polarcodes.schedules.code import ScheduleCode
from polarcodes.schedules.completion_time import Completion, completion, shifted_exponential
from polarcodes.schedules.cpgc import cpgc_coefficients
from polarcodes.schedules.gradient_coding import gradient_coefficients
from polarcodes.schedules.mcc import mcc_coefficients
from polarcodes.schedules.recovery import Recovery
from polarcodes.schedules.schedule import Codeword, Schedule
from polarcodes.schedules.search import SearchResult, search_schedule
from polarcodes.schedules.searched import searched_coefficients
from polarcodes.schedules.weights import RecoveryWeights

__all__ = [
    "SCHEDULE_NAMES",
    "Codeword",
    "Completion",
    "Recovery",
    "RecoveryWeights",
    "Schedule",
    "ScheduleCode",
    "SearchResult",
    "completion",
    "make_schedule",
    "schedule_from_manifest",
    "search_schedule",
    "shifted_exponential",
]

# name: (what makes the table, options, how it is sent)
_MAKERS: dict[str, tuple[Callable[..., NDArray[np.float64]], tuple[str, ...], str]] = {
    "cpgc": (cpgc_coefficients, (), "each"),
    "gradient": (gradient_coefficients, ("seed",), "sum"),
    "mcc": (mcc_coefficients, ("seed",), "together"),
    "rcsc": (rcsc_coefficients, ("seed", "degrees"), "each"),
    "searched": (searched_coefficients, ("tolerance",), "each"),
    "uc-mmc": (uc_mmc_coefficients, (), "each"),
}

SCHEDULE_NAMES = tuple(_MAKERS)
"""Names that :func:`make_schedule` knows."""


def make_schedule(name: str, workers: int, load: int, **options: Any) -> Schedule:
    """Make a schedule of K workers and as many tasks, r of them for each worker.

    Options: ``seed`` (default 0) for ``rcsc``, ``mcc`` and ``gradient``; ``degrees`` for ``rcsc``;
    ``tolerance`` (default 0) for ``searched``. The same arguments give the same schedule on every
    machine. Raises :class:`~polarcodes.errors.InvalidCode` for K or r that a schedule cannot serve.
    """
    if name not in _MAKERS:
        raise InvalidCode(f"schedule name must be one of {', '.join(SCHEDULE_NAMES)}, got {name!r}")
    make, known, sending = _MAKERS[name]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise InvalidCode(
            f"the schedule {name!r} has no option {unknown[0]!r}; it has "
            f"{', '.join(known) or 'none'}"
        )
    seed = options.get("seed", 0) if "seed" in known else None
    return Schedule(name, make(workers, load, **options), sending=sending, seed=seed)


schedule_from_manifest = Schedule.from_manifest
