"""report.html: the report as one self-contained page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from coordinator.report_chart import error_chart
from coordinator.wording import describe_error

__all__ = ["report_page"]

_STYLE = """
:root { color-scheme: light }
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 46rem;
  margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.4rem } h1 code { font-size: 1.1rem }
table { border-collapse: collapse; margin: 1.4rem 0; width: 100% }
caption { text-align: left; font-weight: 600; padding-bottom: .3rem }
td, th { padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top; font-weight: 400;
  border-top: 1px solid #e4e4e4 }
th { color: #555; white-space: nowrap }
.n { text-align: right; font-variant-numeric: tabular-nums }
svg { width: 100%; height: auto } svg text { font: 12px system-ui, sans-serif; fill: #555 }
p { color: #555 }
"""


def report_page(report: Mapping[str, Any], curve: Sequence[tuple[float, int, float]]) -> str:
    """A page from report.json's content and the (seconds, answers, relative error) curve."""
    summary = [
        ("State", f"{report['state']}: {report['message']}"),
        ("Asked", report["until"]),
        ("Answers", f"{report['arrivals']} of {_answers(report)} (s = {report['data_blocks']})"),
        ("Check", report["verification"] or "none"),
        ("Predicted error", _error(report)),
        ("Time", f"{report['seconds']:.2f} s, attempts: {report['attempts']}"),
    ]
    phases = [(name, f"{seconds:.3f} s") for name, seconds in report["phases"].items()]
    failures = [
        (f"worker {f['worker']}, attempt {f['attempt']}", f"{f['type']}: {f['message']}")
        for f in report["failures"]
    ]
    chart = error_chart(curve, report["seconds"], _answers(report), exact=report["exact"])
    parts = [chart, _table("Result", summary), _bill(report), _slowest(report)]
    parts.append(_table("Where the coordinator's time went (waiting not counted)", phases))
    if failures:
        parts.append(_table("Errors that workers reported", failures))
    run, matrix = escape(report["run"]), escape(report["matrix"])
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>Run {run} on {matrix}'
        f"</title><style>{_STYLE}</style><h1>{matrix}, run <code>{run}</code></h1>"
        f"{''.join(parts)}</html>\n"
    )


def _error(report: Mapping[str, Any]) -> str:
    if report["exact"]:
        return f"exact up to rounding, predicted {report['rounding']:.1e} ({report['method']})"
    if report["error"] is None:
        return "no estimate"
    error = describe_error(report["error"], report["error_upper"], report["metric"])
    return f"{error}, {report['method']}"


def _bill(report: Mapping[str, Any]) -> str:
    """What was used and what was planned, line by line, with dollars."""
    planned = (report["planned"] or {}).get("run_cost") or {}
    used = {line["item"]: line for line in report["cost"]["lines"]}
    expected = {line["item"]: line for line in planned.get("lines", ())}
    rows = [
        (
            item,
            _quantity(used.get(item)),
            _quantity(expected.get(item)) if expected else "",
            _dollars(used.get(item)),
            _dollars(expected.get(item)) if expected else "",
        )
        for item in dict.fromkeys((*used, *expected))
    ]
    total = f"planned ${planned['total']:.6f}" if planned else ""
    rows.append(("total", "", "", f"${report['cost']['total']:.6f}", total))
    table = _table("Bill", rows, ("", "used", "planned", "dollars", "planned"))
    bound = report["bound_gb_seconds"]
    if not bound:
        return table
    return (
        f"{table}<p>{bound:,.4g} GB-seconds of the worker time are an upper bound: those workers "
        "were invoked and did not answer, so they are counted until the run ended or until their "
        "time limit.</p>"
    )


def _answers(report: Mapping[str, Any]) -> int:
    """How many answers there are when everybody has given all of its."""
    return int(report["workers"]) * int(report.get("subtasks", 1))


def _quantity(line: Mapping[str, Any] | None) -> str:
    if line is None:
        return "0"
    if line["unit"] == "request":
        return f"{line['quantity']:,.0f}"
    return f"{line['quantity']:,.4g} {line['unit']}s"


def _dollars(line: Mapping[str, Any] | None) -> str:
    return f"${line['dollars'] if line else 0.0:.6f}"


def _slowest(report: Mapping[str, Any]) -> str:
    """The last answers that were waited for."""
    rows = [
        (
            f"worker {a['worker']}"
            + (f", task {a['task']}" if "task" in a else "")
            + (" (cold start)" if a["cold"] else ""),
            f"{a['arrived']:.2f} s",
            f"{a['seconds_total']:.2f} s",
            f"{a['seconds_read']:.2f} s",
            f"{a['seconds_multiply']:.2f} s",
            f"{a['peak_memory'] / (1 << 20):.0f} MB",
        )
        for a in report["answers"][-5:]
    ]
    heads = ("", "arrived at", "worked for", "reading", "multiplying", "peak memory")
    return _table("The last answers", rows, heads) if rows else ""


def _table(caption: str, rows: Sequence[Sequence[str]], heads: Sequence[str] = ()) -> str:
    """Rows of a name and texts, or with `heads` of a name and figures."""
    kind = ' class="n"' if heads else ""
    head = "".join(f"<th{kind}>{escape(text)}</th>" for text in heads)
    body = "".join(
        f"<tr><th>{escape(str(name))}</th>"
        + "".join(f"<td{kind}>{escape(str(text))}</td>" for text in texts)
        + "</tr>"
        for name, *texts in rows
    )
    return f"<table><caption>{escape(caption)}</caption><tr>{head}</tr>{body}</table>"
