"""When a resident worker looks for the next announcement.

The gap between announcements is learnt from the times that they carry, which are their
coordinator's. The two clocks need not agree: the least difference ever seen between them is that of
an announcement seen at once, and forgotten slowly, because clocks drift. (A resident that took the
time at which it saw one for the time of sending would look for the next as late again, in every
product.) Of recent gaps the shortest counts: one look too many costs less than one that is late.

Long before the next one is due looks are rare; about that time they come every 10 % of the gap, so
that an announcement is seen late by 5 % of the gap; after it ever more rarely again. Nothing is
faster than S3 allows for all the workers of a session.
"""

from __future__ import annotations

from collections import deque

__all__ = ["Polling"]

FASTEST = 0.01  # seconds between two looks
SLOWEST = 0.25
ASLEEP = 0.5  # the same long before an announcement is due
GROWTH = 1.5
NEAR = 0.1  # of the gap
EARLY, LATE = 0.9, 1.6  # of the gap: looks are frequent in between
S3_GETS = 5500.0  # a second, on one prefix
RECENT = 4  # gaps that are remembered
DRIFT = 0.01  # of the gap, by which the least lateness is forgotten with each announcement


class Polling:
    """The pauses of one of `workers` residents that look at the same object."""

    def __init__(self, workers: int) -> None:
        self._fastest = max(FASTEST, workers / S3_GETS)
        self._slowest = max(SLOWEST, self._fastest)
        self._pause = self._fastest
        self._gaps: deque[float] = deque(maxlen=RECENT)
        self._seen = 0  # announcements
        self._sent: float | None = None  # the newest announcement, on the coordinator's clock
        self._apart = 0.0  # our clock less the coordinator's, and the least time on the way

    def announced(self, at: float, sent: float) -> None:
        """An announcement was seen at `at` on our clock; it says `sent` on the coordinator's."""
        apart = at - sent
        self._seen += 1
        if self._sent is None:
            self._apart = apart
        else:
            gap = max(0.0, sent - self._sent)
            if self._seen > 2:  # the first one was that of cold starts and loading
                self._gaps.append(gap)
            forgotten = self._apart + DRIFT * gap
            stepped = apart - self._apart > max(gap, ASLEEP)  # a clock was set
            self._apart = apart if stepped else min(forgotten, apart)
        self._sent, self._pause = sent, self._fastest

    def before(self, at: float) -> float:
        """Seconds in which a look would be too early; 0 when the next announcement may be there."""
        if not self._gaps:
            return 0.0
        early = EARLY * min(self._gaps) - self._since(at)
        return min(max(ASLEEP, self._slowest), max(0.0, early))

    def pause(self, at: float) -> float:
        """Seconds to sleep before the next look, after one that found nothing new."""
        early = self.before(at)
        if early > 0:
            return max(self._fastest, early)
        if self._gaps and self._since(at) < LATE * max(self._gaps):
            return min(self._slowest, max(self._fastest, NEAR * min(self._gaps)))
        pause = self._pause
        self._pause = min(self._slowest, GROWTH * pause)
        return pause

    def _since(self, at: float) -> float:
        """Seconds since the newest announcement was made."""
        return at - self._apart - (self._sent or 0.0)
