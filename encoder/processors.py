"""How many processors this process may use."""

from __future__ import annotations

import os


def processors() -> int:
    """Processors of this process, which a container may have fewer of than the machine."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
