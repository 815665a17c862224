"""The shape of a tree of invocations: from how many workers on, and how many for each branch."""

from __future__ import annotations

__all__ = ["LEAST_PART", "MOST_PART", "TREE_FROM", "parts"]

TREE_FROM = 2_048  # workers: below, one client is as fast (docs/scale.md)
LEAST_PART = 64  # workers of a dispatch function
MOST_PART = 2_048


def parts(count: int, threads: int) -> int:
    """Workers of each dispatch function when `count` are to be invoked: one function for each
    thread of the coordinator, so that all of them can be under way at once, but no part below
    64."""
    return min(MOST_PART, max(LEAST_PART, -(-count // threads)))
