"""How long resident workers are alive, and what that costs: they are billed while they wait, too.

Nobody reports a resident's end. What is counted is a bound: from its invocation until it was
relieved, idled out, was sent away, or reached the function's time limit, whichever is known to come
first.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from statistics import fmean

from blockstore.answers import AnswerMetadata
from coordinator.cost import Usage

__all__ = ["Stays"]

MB_PER_GB = 1024


@dataclass
class _Stay:
    worker: int
    begin: float
    end: float


class Stays:
    """The residents of a session, past and present.

    Parameters
    ----------
    memory_mb, timeout : of the worker function, MB and seconds
    block_gets : GETs that load the blocks of one worker
    """

    def __init__(self, memory_mb: int, timeout: float, block_gets: int) -> None:
        self._memory_mb = memory_mb
        self._timeout = timeout
        self._block_gets = block_gets
        self._stays: list[_Stay] = []
        self._settled = float("-inf")
        self._invoked = self._announced = self._asked = self._x_gets = 0
        self.invocations = 0  # in all

    def begin(self, worker: int, at: float) -> None:
        """A resident is invoked. One that the worker has already stays until its own end."""
        self._stays.append(_Stay(worker, at, at + self._timeout))
        self._invoked += 1
        self.invocations += 1

    def end(self, worker: int, at: float) -> None:
        """The residents of a worker end now."""
        for stay in self._stays:
            if stay.worker == worker:
                stay.end = min(stay.end, at)

    def end_all(self, at: float) -> None:
        """The residents of all workers end at that time, or ended then."""
        for stay in self._stays:
            stay.end = min(stay.end, max(at, stay.begin))

    def announced(self, asked: int, x_gets: int) -> None:
        """An announcement was put that asks for `asked` answers; `x_gets`: GETs of x for it."""
        self._announced += 1
        self._asked += asked
        self._x_gets += x_gets

    def seconds(self, now: float) -> float:
        """Seconds of life since the last settlement, of all residents together."""
        return sum(
            max(0.0, min(now, stay.end) - max(stay.begin, self._settled)) for stay in self._stays
        )

    def usage(self, now: float, answers: Collection[AnswerMetadata] = ()) -> Usage:
        """What the residents have used since the last settlement.

        The looks of those that answered are what they say; the others of a run are taken to have
        looked as often.
        """
        polls = fmean(m.polls for m in answers) * self._asked if answers else 0.0
        return Usage(
            puts=self._announced,
            gets=self._invoked * self._block_gets + self._x_gets + round(polls),
            invokes=self._invoked,
            worker_gb_seconds=self.seconds(now) * self._memory_mb / MB_PER_GB,
        )

    def settle(self, now: float, answers: Collection[AnswerMetadata]) -> Usage:
        """`usage`, which counts from now on again."""
        used = self.usage(now, answers)
        self._stays = [stay for stay in self._stays if stay.end > now]
        self._settled = now
        self._invoked = self._announced = self._asked = self._x_gets = 0
        return used
