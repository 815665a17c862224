"""How many processors this process may use, and threads with them."""

from __future__ import annotations

import os

MOST_THREADS = 8  # each has memory of its own: pieces being read, the transform's scratch


def threads(of: int | None = None) -> int:
    """Threads for work that is not waiting: one for each processor, this machine's or `of` them, up
    to 8."""
    return min(processors() if of is None else of, MOST_THREADS)


def processors() -> int:
    """Processors of this process, which a container may have fewer of than the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
