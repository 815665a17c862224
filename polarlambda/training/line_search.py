"""How far to go along a direction. Every look is free: no product is needed for it."""

from __future__ import annotations

import math

from polarlambda.training.gradients import Line

FLAT = 0.02  # a slope this small beside the first one is the bottom
DECREASE = 1e-4  # Armijo's constant
LOOKS = 60


def search_line(line: Line, guess: float = 1.0) -> float:
    """A step a > 0 near the bottom of a convex line, 0 when it does not descend.

    Looks for |slope(a)| <= 0.02 |slope(0)|: the secant extrapolates while the line still falls,
    then halves or interpolates within the bracket, and backtracks where the loss has overflowed. A
    last secant step makes it exact for a quadratic, which conjugate directions rest on. The
    step that is returned decreases the loss by at least 1e-4 a |slope(0)| (Armijo).
    """
    first = line.slope(0.0)
    if not (math.isfinite(first) and first < 0):
        return 0.0
    low, low_slope = 0.0, first
    high, high_slope = math.inf, math.nan
    a = guess if guess > 0 and math.isfinite(guess) else 1.0
    for _ in range(LOOKS):
        slope = line.slope(a)
        if math.isfinite(slope) and abs(slope) <= FLAT * -first:
            low = a * first / (first - slope)
            break
        if math.isfinite(slope) and slope < 0:
            previous, previous_slope = low, low_slope
            low, low_slope = a, slope
            if math.isinf(high):
                bend = (slope - previous_slope) / (a - previous)
                a = min(a - slope / bend, 100 * a) if bend > 0 else 100 * a
                continue
        else:
            high, high_slope = a, slope
        a = _between(low, low_slope, high, high_slope)
    return _backtrack(line, low, first)


def _between(low: float, low_slope: float, high: float, high_slope: float) -> float:
    """Where the secant meets zero, kept away from the ends of the bracket."""
    width = high - low
    if not math.isfinite(high_slope):
        return low + 0.1 * width if low == 0 else low + 0.5 * width
    a = low - low_slope * width / (high_slope - low_slope)
    return min(max(a, low + 0.05 * width), high - 0.05 * width)


def _backtrack(line: Line, a: float, first: float) -> float:
    """The largest of a, a / 2, a / 4, ... that decreases the loss enough; 0 if none does."""
    start = line.loss(0.0)
    for _ in range(LOOKS):
        if a <= 0:
            return 0.0
        loss = line.loss(a)
        if math.isfinite(loss) and loss <= start + DECREASE * a * first:
            return a
        a /= 2
    return 0.0
