"""The error of a run's estimate over time, as inline SVG: a step for every answer."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["error_chart"]

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 16, 34, 40
FLOOR = 1e-3  # relative errors below are drawn on the axis
STEPS = (1, 2, 5)


def error_chart(
    curve: Sequence[tuple[float, int, float]], end: float, workers: int, *, exact: bool
) -> str:
    """SVG of `curve`, the (seconds, answers, predicted relative error) after every answer.

    end : seconds at which the run ended, with the exact product if `exact`
    """
    points = [(t, m, min(10.0, max(FLOOR, e))) for t, m, e in curve if math.isfinite(e)]
    if not points:
        return "<p>No answer arrived.</p>"
    end = max(end, points[-1][0], 1e-9)
    low = math.floor(math.log10(min(e for _, _, e in points)))
    high = max(low + 1, math.ceil(math.log10(max(e for _, _, e in points))))

    def x(t: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * t / end

    def y(error: float) -> float:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - math.log10(error)) / (high - low)

    steps = [f"M{x(points[0][0]):.1f},{y(points[0][2]):.1f}"]
    steps += [f"H{x(t):.1f}V{y(e):.1f}" for t, _, e in points[1:]]
    steps.append(f"H{x(end):.1f}" + (f"V{HEIGHT - BOTTOM}" if exact else ""))
    dots = "".join(
        f'<circle cx="{x(t):.1f}" cy="{y(e):.1f}" r="2.5" fill="#1667b0">'
        f"<title>{t:.2f} s: {m} of {workers} answers, error {e:.3g}</title></circle>"
        for t, m, e in points
    )
    grid = "".join(
        _line(LEFT, y(10.0**k), WIDTH - RIGHT, y(10.0**k))
        + _text(LEFT - 8, y(10.0**k) + 4, f"{100 * 10.0**k:g} %", "end")
        for k in range(low, high + 1)
    )
    marks = "".join(
        _line(x(t), HEIGHT - BOTTOM, x(t), HEIGHT - BOTTOM + 5)
        + _text(x(t), HEIGHT - BOTTOM + 20, f"{t:g} s", "middle")
        for t in _ticks(end)
    )
    last = "decoded: exact" if exact else f"{points[-1][2]:.1%}"
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="predicted relative error">'
        f"{grid}{marks}"
        f'<path d="{"".join(steps)}" fill="none" stroke="#1667b0" stroke-width="2"/>{dots}'
        + _text(x(end) - 6, HEIGHT - BOTTOM - 8 if exact else y(points[-1][2]) - 8, last, "end")
        + _text(LEFT, 18, "Predicted relative error of the estimate, a dot for every answer")
        + "</svg>"
    )


def _ticks(end: float) -> list[float]:
    """Round times from 0 to `end`, at most 8."""
    unit = 10.0 ** math.floor(math.log10(end / 4))
    step = next((unit * k for k in STEPS if end / (unit * k) < 8), 10 * unit)
    return [round(k * step, 9) for k in range(int(end / step) + 1)]


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#ccc"/>'


def _text(x: float, y: float, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'
