"""When do the workers of a schedule have enough? Many rounds simulated at once.

The elimination of :class:`~polarcodes.schedules.recovery.Recovery`, carried out for a batch of
rounds in step, so that a thousand rounds of 20 workers take a fraction of a second. Nothing here
reads a clock: times are numbers that the caller draws.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from polarcodes.checks import integer
from polarcodes.errors import InvalidCode
from polarcodes.schedules.checks import needed
from polarcodes.schedules.schedule import Schedule

_ZERO = 1e-9
_BATCH_VALUES = 1 << 17  # of the echelon forms together: 1 MB, within the cache


def shifted_exponential(
    rng: np.random.Generator, rounds: int, workers: int, *, alpha: float = 0.01, mu: float = 10.0
) -> NDArray[np.float64]:
    """Draw seconds per task, (rounds, K): alpha + Exp(mu), one draw per worker and round.

    The timing model of arXiv 1811.09271 with its constants.
    """
    return np.asarray(alpha + rng.exponential(1.0 / mu, (rounds, workers)), dtype=np.float64)


@dataclass(frozen=True)
class Completion:
    """Moments and message counts at which tasks were recovered, round by round.

    Attributes
    ----------
    seconds : (rounds, M + 1) float64
        ``seconds[:, q]`` is when at least q tasks were recovered, inf where they never were.
    messages : (rounds, M + 1) intp
        How many messages had arrived by then, all counted, useful or not.
    message_volume : float
        Size of one message in whole products.
    """

    seconds: NDArray[np.float64]
    messages: NDArray[np.intp]
    message_volume: float

    def time(self, tolerance: float = 0.0) -> NDArray[np.float64]:
        """Return the seconds of each round until at most this share of the tasks is missing."""
        times: NDArray[np.float64] = self.seconds[:, self._needed(tolerance)]
        return times

    def message_count(self, tolerance: float = 0.0) -> NDArray[np.intp]:
        """Return the messages of each round by that time."""
        counts: NDArray[np.intp] = self.messages[:, self._needed(tolerance)]
        return counts

    def volume(self, tolerance: float = 0.0) -> NDArray[np.float64]:
        """Return the communication volume of each round by that time, in whole products."""
        return np.asarray(self.message_count(tolerance) * self.message_volume, dtype=np.float64)

    def _needed(self, tolerance: float) -> int:
        return needed(self.seconds.shape[1] - 1, tolerance)


def completion(
    schedule: Schedule,
    task_seconds: NDArray[np.float64],
    *,
    wait: NDArray[np.float64] | None = None,
    enough: int | None = None,
) -> Completion:
    """Replay rounds of a schedule: ``task_seconds`` (rounds, K), the time of one task.

    ``wait`` (rounds, K) is what a worker loses before its first task, none by default; inf in
    either stands for a worker that never answers. ``enough`` ends a round early, at that many
    recovered tasks. Raises :class:`~polarcodes.errors.InvalidCode`. Cost: for each message of a
    round O(M^2).
    """
    seconds = _times("task_seconds", task_seconds, schedule.workers)
    arrival = schedule.message_times(seconds)
    if wait is not None:
        arrival = arrival + _times("wait", wait, schedule.workers)[:, :, None]
    arrival = arrival.reshape(len(seconds), schedule.workers * schedule.messages_per_worker)
    M = schedule.tasks
    target = M if enough is None else integer("enough", enough, 1, M)
    size = max(1, _BATCH_VALUES // M**2)
    parts = [
        _batch(schedule, arrival[start : start + size], target)
        for start in range(0, len(seconds), size)
    ]
    times = np.concatenate([part[0] for part in parts] or [np.zeros((0, M + 1))])
    counts = np.concatenate([part[1] for part in parts] or [np.zeros((0, M + 1), np.intp)])
    return Completion(times, counts, schedule.message_volume)


def _times(name: str, given: NDArray[np.float64], workers: int) -> NDArray[np.float64]:
    times = np.asarray(given, dtype=np.float64)
    if times.ndim != 2 or times.shape[1] != workers or not (times >= 0).all():
        raise InvalidCode(
            f"{name} must be (rounds, {workers}) numbers >= 0, got shape {times.shape}"
        )
    return times


def _batch(
    schedule: Schedule, arrival: NDArray[np.float64], enough: int
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    rounds, M = len(arrival), schedule.tasks
    order = np.argsort(arrival, axis=1, kind="stable")
    arrival = np.take_along_axis(arrival, order, axis=1)
    times = np.full((rounds, M + 1), np.inf)
    times[:, 0] = 0.0
    counts = np.zeros((rounds, M + 1), np.intp)
    equations = _equations(schedule)
    state = _Forms(rounds, M, is_sum=schedule.sending == "sum")
    running = np.arange(rounds)
    reached = np.zeros(rounds, np.intp)
    levels = np.arange(M + 1)
    for step in range(order.shape[1]):
        for part in range(equations.shape[1]):
            state.add(equations[order[running, step], part])
        now = state.recovered()
        newly = (levels > reached[running, None]) & (levels <= now[:, None])
        moment = arrival[running, step]
        newly &= np.isfinite(moment)[:, None]
        times[running] = np.where(newly, moment[:, None], times[running])
        counts[running] = np.where(newly, step + 1, counts[running])
        reached[running] = np.maximum(reached[running], now)
        going = reached[running] < enough
        if not going.all():
            running = running[going]
            state.keep(going)
            if not running.size:
                break
    return times, counts


def _equations(schedule: Schedule) -> NDArray[np.float64]:
    """All messages' equations, (K x messages, parts, M), in the order of message_times."""
    rows = schedule.coefficients.transpose(1, 0, 2)  # (K, r, M)
    if schedule.sending == "each":
        rows = rows.reshape(-1, 1, schedule.tasks)
    elif schedule.sending == "sum":
        rows = rows.sum(axis=1)[:, None, :]
    return rows


class _Forms:
    """Reduced row echelon forms of a batch, (rounds, M, M); row p has its pivot in column p."""

    def __init__(self, rounds: int, M: int, *, is_sum: bool) -> None:
        self._forms = np.zeros((rounds, M, M))
        self._largest = np.ones((rounds, M))
        self._sum_left = np.ones((rounds, M)) if is_sum else None

    def add(self, rows: NDArray[np.float64]) -> None:
        """Eliminate one equation of every round."""
        each = np.arange(len(rows))
        scale = np.einsum("bi,bi->b", np.abs(rows), self._largest)[:, None]
        left = rows - np.einsum("bi,bij->bj", rows, self._forms)
        left[np.abs(left) <= _ZERO * scale] = 0.0
        pivot = np.abs(left).argmax(axis=1)
        value = left[each, pivot]
        new = value != 0.0
        left /= np.where(new, value, 1.0)[:, None]
        factors = self._forms[each, :, pivot]
        bound = _ZERO * np.maximum(1.0, np.abs(factors))[:, :, None]
        self._forms -= factors[:, :, None] * left[:, None, :]
        self._forms[np.abs(self._forms) <= bound] = 0.0
        self._forms[each[new], pivot[new]] = left[new]
        self._largest = np.maximum(1.0, np.abs(self._forms).max(axis=2))
        if self._sum_left is not None:
            self._sum_left -= self._sum_left[each, pivot][:, None] * left

    def recovered(self) -> NDArray[np.intp]:
        """How many tasks of each round are recovered."""
        if self._sum_left is not None:
            known = np.abs(self._sum_left).max(axis=1) <= 1e-7
            return np.asarray(known * self._sum_left.shape[1], dtype=np.intp)
        single = np.count_nonzero(self._forms, axis=2) == 1
        return np.asarray(single.sum(axis=1), dtype=np.intp)

    def keep(self, going: NDArray[np.bool_]) -> None:
        """Forget the rounds that are done."""
        self._forms, self._largest = self._forms[going], self._largest[going]
        if self._sum_left is not None:
            self._sum_left = self._sum_left[going]
