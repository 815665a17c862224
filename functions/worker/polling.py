"""When a resident worker looks for the next announcement.

The gap between announcements is learnt. Long before the next one is due looks are rare; about that
time they come every 10 % of the gap, so that an announcement is seen late by 5 % of the gap; after
it ever more rarely again. Nothing is faster than S3 allows for all the workers of a session.
"""

from __future__ import annotations

__all__ = ["Polling"]

FASTEST = 0.01  # seconds between two looks
SLOWEST = 0.25
ASLEEP = 0.5  # the same long before an announcement is due
GROWTH = 1.5
NEAR = 0.1  # of the gap
EARLY, LATE = 0.8, 1.6  # of the gap: looks are frequent in between
S3_GETS = 5500.0  # a second, on one prefix
LEARN = 0.5  # weight of the newest gap


class Polling:
    """The pauses of one of `workers` residents that look at the same object."""

    def __init__(self, workers: int) -> None:
        self._fastest = max(FASTEST, workers / S3_GETS)
        self._slowest = max(SLOWEST, self._fastest)
        self._pause = self._fastest
        self._gap: float | None = None
        self._last: float | None = None

    def announced(self, at: float) -> None:
        """An announcement was seen at this time, in seconds."""
        if self._last is not None:
            new = at - self._last
            self._gap = new if self._gap is None else LEARN * new + (1 - LEARN) * self._gap
        self._last, self._pause = at, self._fastest

    def pause(self, at: float) -> float:
        """Seconds to sleep before the next look, after one that found nothing new."""
        if self._gap is not None and self._last is not None:
            since = at - self._last
            if since < EARLY * self._gap:
                due = EARLY * self._gap - since
                return min(max(ASLEEP, self._slowest), max(self._fastest, due))
            if since < LATE * self._gap:
                return min(self._slowest, max(self._fastest, NEAR * self._gap))
        pause = self._pause
        self._pause = min(self._slowest, GROWTH * pause)
        return pause
