"""When a worker looks for its run's stop marker: in the worker, its simulation, plans and bills.

Most workers begin at once, and a run that somebody has just had them invoked for is on: a look of
each would be a request for every worker of a fleet within a second or two, of one prefix. Those
that begin late, out of Lambda's queue or on a cold environment, look before they start, and all
look every few seconds while they work.
"""

from __future__ import annotations

__all__ = ["FRESH", "STOP_INTERVAL", "is_fresh"]

FRESH = 1.0  # seconds after it was sent in which a worker begins without a look
STOP_INTERVAL = 3.0  # seconds between two looks while it works


def is_fresh(sent: float, now: float) -> bool:
    """Whether an event that was sent at `sent` (seconds since 1970; 0: it does not say) is so
    young that its run is known to be on.

    The two clocks may differ: an event from the future is not fresh, and with a clock that is wrong
    by a constant, only those who begin within `FRESH` of one moment do not look.
    """
    return 0.0 <= now - sent <= FRESH
