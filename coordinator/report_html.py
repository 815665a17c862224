"""report.html: the report as one self-contained page, the error curve drawn as inline SVG."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

__all__ = ["report_page"]

WIDTH, HEIGHT, MARGIN = 640, 260, 46
FLOOR = 1e-3  # relative errors below are drawn on the axis

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0 } caption { text-align: left; font-weight: 600 }
td, th { padding: .15rem .8rem .15rem 0; text-align: left; vertical-align: top }
td.n { text-align: right; font-variant-numeric: tabular-nums }
svg text { font: 12px system-ui, sans-serif; fill: #555 }
"""


def report_page(report: Mapping[str, Any], curve: Sequence[tuple[float, int, float]]) -> str:
    """A page from report.json's content and the (seconds, arrivals, relative error) curve."""
    summary = {
        "State": f"{report['state']}: {report['message']}",
        "Answers": f"{report['arrivals']} of {report['workers']} (s = {report['data_blocks']})",
        "Check": report["verification"] or "none",
        "Predicted error": _error(report),
        "Time": f"{report['seconds']:.2f} s",
        "Cost": f"${report['cost']['total']:.6f}" + _planned(report),
    }
    usage = {name.replace("_", " "): f"{value:,.4g}" for name, value in report["usage"].items()}
    phases = {name: f"{seconds:.3f} s" for name, seconds in report["phases"].items()}
    failures = {
        f"worker {f['worker']}, attempt {f['attempt']}": f"{f['type']}: {f['message']}"
        for f in report["failures"]
    }
    tables = [_table("Result", summary), _table("Phases", phases), _table("Usage", usage)]
    if failures:
        tables.append(_table("Errors that workers reported", failures))
    title = f"Run {report['run']} on {report['matrix']}"
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style><h1>{escape(title)}</h1>{_svg(curve)}{''.join(tables)}</html>\n"
    )


def _error(report: Mapping[str, Any]) -> str:
    if report["exact"]:
        return "exact"
    if report["error"] is None:
        return "no estimate"
    upper = report["error_upper"]
    return f"{report['error']:.3g}" + ("" if upper is None else f" (95 %: below {upper:.3g})")


def _planned(report: Mapping[str, Any]) -> str:
    planned = report["planned"] or {}
    bill = planned.get("run_cost")
    return f" (planned ${bill['total']:.6f})" if bill else ""


def _table(caption: str, rows: Mapping[str, str]) -> str:
    body = "".join(
        f"<tr><th>{escape(name)}<td>{escape(str(value))}" for name, value in rows.items()
    )
    return f"<table><caption>{escape(caption)}</caption>{body}</table>"


def _svg(curve: Sequence[tuple[float, int, float]]) -> str:
    """The predicted relative error over time, on a logarithmic axis."""
    points = [(t, max(FLOOR, e)) for t, _, e in curve if math.isfinite(e)]
    if not points:
        return "<p>No answer arrived.</p>"
    longest = max(t for t, _ in points) or 1.0
    low, high = math.log10(FLOOR), math.log10(max(10.0, *(e for _, e in points)))

    def x(t: float) -> float:
        return MARGIN + (WIDTH - 2 * MARGIN) * t / longest

    def y(error: float) -> float:
        return MARGIN + (HEIGHT - 2 * MARGIN) * (high - math.log10(error)) / (high - low)

    line = " ".join(f"{x(t):.1f},{y(e):.1f}" for t, e in points)
    ticks = "".join(
        f'<line x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{y(10.0**k):.1f}" y2="{y(10.0**k):.1f}" '
        f'stroke="#ddd"/><text x="4" y="{y(10.0**k) + 4:.1f}">{10.0**k:g}</text>'
        for k in range(math.ceil(low), math.floor(high) + 1)
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="predicted relative error">'
        f"{ticks}<polyline points='{line}' fill='none' stroke='#1667b0' stroke-width='2'/>"
        f'<text x="{MARGIN}" y="{HEIGHT - 12}">0 s</text>'
        f'<text x="{WIDTH - MARGIN - 40}" y="{HEIGHT - 12}">{longest:.2f} s</text>'
        f'<text x="{MARGIN}" y="20">predicted relative error of the estimate</text></svg>'
    )
