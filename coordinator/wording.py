"""Errors of estimates in words that help to decide."""

from __future__ import annotations

import math

__all__ = ["describe_error"]

_WHAT = {"vector": "relative error", "inner": "error of inner products over ||C|| ||A x||"}


def describe_error(error: float, upper: float | None = None, metric: str = "vector") -> str:
    """A predicted relative rms error and its 95 % bound.

    At 100 % an estimate is as far from the product as 0 is: above, digits say nothing more.

    >>> describe_error(0.25, 0.314), describe_error(2.6)
    ('relative error about 25.0% (95 %: 31.4%)', 'relative error > 100%: worse than answering 0')
    """
    what = _WHAT[metric]
    if not error < 1:
        return f"{what} > 100%: worse than answering 0"
    if upper is None or not math.isfinite(upper):
        return f"{what} about {error:.1%}"
    bound = f"{upper:.1%}" if upper <= 1 else "> 100%"
    return f"{what} about {error:.1%} (95 %: {bound})"
