"""Search for a schedule that minimises the mean time at a tolerance, for given delays.

Searched are the circulant schedules (worker k's codewords are worker 1's, shifted by k) whose first
row is uncoded and whose others have coefficients +1 and -1, of any degrees. Circulant on purpose:
without that, the fastest schedule at a tolerance codes over the tasks it needs and never computes
the others, which would skew every gradient. An uncoded first row, so that early results are useful
as they are; without it the mean time in the paper's setting is 1 % less at best. Signs, because
sums with plain ones are more often dependent; integers stay exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polarcodes.checks import integer
from polarcodes.errors import InvalidCode
from polarcodes.schedules import checks
from polarcodes.schedules.circulant import (
    circulant_coefficients,
    rcsc_coefficients,
    uc_mmc_coefficients,
)
from polarcodes.schedules.completion_time import completion
from polarcodes.schedules.cpgc import cpgc_coefficients
from polarcodes.schedules.mcc import mcc_coefficients
from polarcodes.schedules.schedule import Schedule

Draw = Callable[[np.random.Generator, int, int], NDArray[np.float64]]
"""(generator, rounds, workers) -> (rounds, workers) seconds per task."""

Bases = list[dict[int, int]]
"""For each row, worker 1's codeword: shift -> +1 or -1."""

_FIRST_LOOK = 5  # a candidate meets 1/5 of the rounds first ...
_HOPELESS = 1.03  # ... and is dropped when it is that much slower there
_STARTS = 4  # one candidate in four is a fresh start, the others change the best so far
_SURE = 2.33  # standard errors of the paired difference: 99 %


@dataclass(frozen=True)
class SearchResult:
    """What a search found, measured on rounds it was not searched on.

    Attributes
    ----------
    schedule : Schedule
        The best one found, named "searched".
    bases : list of dict
        Its rows for worker 1, shift -> sign.
    seconds : float
        Its mean time on the held-out rounds.
    rivals : dict
        Mean time of the named schedules on the same rounds.
    kept : bool
        Whether it beats every rival there, by more than 2.33 standard errors of the difference.
    """

    schedule: Schedule
    bases: Bases
    seconds: float
    rivals: dict[str, float]
    kept: bool


def search_schedule(
    workers: int,
    load: int,
    draw: Draw,
    *,
    tolerance: float = 0.0,
    seed: int = 0,
    candidates: int = 1000,
    rounds: int = 300,
    held_out: int = 1000,
    held_out_draw: Draw | None = None,
    max_degree: int | None = None,
) -> SearchResult:
    """Search for the schedule of K workers and r codewords with the least mean time.

    ``candidates`` schedules are looked at on ``rounds`` rounds of ``draw``; the best then meets
    ``held_out`` new rounds of ``held_out_draw`` (default: of ``draw``) together with the rivals.
    ``max_degree`` limits how many tasks a codeword adds up (encoding costs that many additions).
    The same arguments give the same schedule. Raises :class:`~polarcodes.errors.InvalidCode`.
    """
    K, r = checks.workers_and_load(workers, load)
    if r == 1:
        raise InvalidCode(
            "load must be at least 2, got 1: the first row is uncoded, no other is left"
        )
    needed = checks.needed(K, tolerance)
    highest = K if max_degree is None else integer("max_degree", max_degree, 1, K)
    for name, value in (("candidates", candidates), ("rounds", rounds), ("held_out", held_out)):
        integer(name, value, 2, None)
    rng = np.random.default_rng([integer("seed", seed, 0, None), 0])
    training = draw(rng, rounds, K)
    best = _start(rng, K, r, highest)
    best_times = _times(_schedule(K, best), training, needed)
    look = max(1, rounds // _FIRST_LOOK)
    for number in range(candidates):
        fresh = number % _STARTS == 0 and number < candidates // 2
        bases = _start(rng, K, r, highest) if fresh else _changed(rng, K, best, highest)
        if not _valid(K, bases):
            continue
        schedule = _schedule(K, bases)
        early = _times(schedule, training[:look], needed)
        if not early.mean() <= _HOPELESS * best_times[:look].mean():
            continue
        times = np.concatenate([early, _times(schedule, training[look:], needed)])
        if times.mean() < best_times.mean():
            best, best_times = bases, times
    unseen = np.random.default_rng([seed, 1])
    rounds_left = (held_out_draw or draw)(unseen, held_out, K)
    return _judge(_schedule(K, best), best, rounds_left, needed)


def _judge(
    found: Schedule, bases: Bases, task_seconds: NDArray[np.float64], needed: int
) -> SearchResult:
    """Compare with the named schedules on rounds that the search has not seen."""
    times = _times(found, task_seconds, needed)
    rivals: dict[str, float] = {}
    kept = True
    for rival in _rivals(found.workers, found.load):
        theirs = _times(rival, task_seconds, needed)
        rivals[rival.name] = float(theirs.mean())
        if not np.isfinite(theirs).all():
            continue
        gain = theirs - times
        error = gain.std(ddof=1) / np.sqrt(len(gain))
        kept = kept and bool(gain.mean() > _SURE * error)
    return SearchResult(found, bases, float(times.mean()), rivals, kept)


def _rivals(K: int, r: int) -> list[Schedule]:
    rivals = [
        Schedule("uc-mmc", uc_mmc_coefficients(K, r)),
        Schedule("mcc", mcc_coefficients(K, r), sending="together", seed=0),
    ]
    for name, make in (("cpgc", cpgc_coefficients), ("rcsc", rcsc_coefficients)):
        try:
            rivals.append(Schedule(name, make(K, r)))
        except InvalidCode:  # this rival does not serve this K and r
            continue
    return rivals


def _times(
    schedule: Schedule, task_seconds: NDArray[np.float64], needed: int
) -> NDArray[np.float64]:
    return completion(schedule, task_seconds, enough=needed).seconds[:, needed]


def _schedule(K: int, bases: Bases) -> Schedule:
    rows = [[(shift, float(sign)) for shift, sign in base.items()] for base in bases]
    return Schedule("searched", circulant_coefficients(K, rows))


def _valid(K: int, bases: Bases) -> bool:
    try:
        _schedule(K, bases)
    except InvalidCode:  # a worker would meet a codeword twice
        return False
    return True


def _start(rng: np.random.Generator, K: int, r: int, highest: int) -> Bases:
    """Random bases: the first row uncoded, the others of degrees spread evenly in ratio."""
    while True:
        degrees = (int(highest ** rng.random()) for _ in range(r - 1))
        bases = [{0: 1}, *(_random_base(rng, K, degree) for degree in degrees)]
        if _valid(K, bases):
            return bases


def _random_base(rng: np.random.Generator, K: int, degree: int) -> dict[int, int]:
    shifts = rng.permutation(K)[:degree]
    return {int(shift): int(sign) for shift, sign in zip(shifts, _signs(rng, degree), strict=True)}


def _signs(rng: np.random.Generator, count: int) -> NDArray[np.intp]:
    return np.where(rng.random(count) < 0.5, np.intp(-1), np.intp(1))


def _changed(rng: np.random.Generator, K: int, bases: Bases, highest: int) -> Bases:
    """One coded row changed: a task more or less, another instead, a sign, or drawn anew."""
    row = int(rng.integers(1, len(bases)))
    base = dict(bases[row])
    kind = rng.integers(5)
    inside = list(base)
    outside = [shift for shift in range(K) if shift not in base]
    leaving = inside[int(rng.integers(len(inside)))]
    if kind == 0 and outside and len(base) < highest:
        base[outside[int(rng.integers(len(outside)))]] = int(_signs(rng, 1)[0])
    elif kind == 1 and len(base) > 1:
        del base[leaving]
    elif kind == 2 and outside:
        base[outside[int(rng.integers(len(outside)))]] = base.pop(leaving)
    elif kind == 3:
        base[leaving] = -base[leaving]
    else:
        base = _random_base(rng, K, int(highest ** rng.random()))
    return [*bases[:row], base, *bases[row + 1 :]]
