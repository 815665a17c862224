"""What the benchmarks share: alternating pairs, medians, a table, and a JSON file.

A ratio is the median over pairs that were measured one right after the other, because on a shared
machine both sides of a pair see the same weather. Timing never decides the exit code; a wrong
result does.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results"


class WrongResult(Exception):
    """What was measured did not compute what it should."""


@dataclass(frozen=True)
class Ratio:
    """One measured quantity over its reference, beside the target.

    ``target`` is the largest ratio that is good enough, or the smallest when ``at_least``; None
    when there is none. ``value`` and ``reference`` are in ``unit``.
    """

    name: str
    ratio: float
    value: float
    reference: float
    unit: str
    target: float | None = None
    at_least: bool = False

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None when there is none."""
        if self.target is None:
            return None
        return self.ratio >= self.target if self.at_least else self.ratio <= self.target


def seconds(action: Callable[[], Any]) -> float:
    """Wall time of one call."""
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def time_pairs(
    name: str,
    measured: Callable[[], Any],
    reference: Callable[[], Any],
    *,
    pairs: int,
    prepare: Callable[[], Any] = lambda: None,
    target: float | None = None,
    faster: bool = False,
) -> Ratio:
    """Time both actions in alternating order, after one unmeasured call of each.

    ``prepare`` runs before every call, outside the clock. The ratio is measured over reference;
    with ``faster`` it is reference over measured, and the target a least one.
    """
    for action in (measured, reference):
        prepare()
        action()
    times: list[tuple[float, float]] = []
    for pair in range(pairs):
        taken = {}
        for action in (measured, reference) if pair % 2 == 0 else (reference, measured):
            prepare()
            taken[action] = seconds(action)
        times.append((taken[measured], taken[reference]))
    ratios = [b / a if faster else a / b for a, b in times]
    return Ratio(
        name=name,
        ratio=statistics.median(ratios),
        value=statistics.median(a for a, _ in times),
        reference=statistics.median(b for _, b in times),
        unit="s",
        target=target,
        at_least=faster,
    )


def require_close(name: str, got: Any, wanted: Any, tolerance: float) -> None:
    """Raise WrongResult unless ||got - wanted|| <= tolerance ||wanted||."""
    wanted = np.asarray(wanted, dtype=np.float64)
    error = float(np.linalg.norm(got - wanted) / np.linalg.norm(wanted))
    if not error <= tolerance:
        raise WrongResult(f"{name}: relative error {error:.2e}, at most {tolerance:.0e} is right")


def table(rows: Sequence[Ratio]) -> str:
    """The rows as aligned text."""
    lines = [("", "measured", "reference", "ratio", "target", "")]
    for row in rows:
        bound = "" if row.target is None else f"{'>=' if row.at_least else '<='} {row.target:g}"
        verdict = {True: "met", False: "NOT MET", None: ""}[row.met]
        shown = [f"{number:.3g} {row.unit}" for number in (row.value, row.reference)]
        lines.append((row.name, *shown, f"{row.ratio:.2f}", bound, verdict))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def save(name: str, results: dict[str, Any]) -> Path:
    """Write ``results`` and what they were measured on to benchmarks/results/NAME.json."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    machine = {
        "processors": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    path.write_text(json.dumps({"machine": machine, **results}, indent=2, allow_nan=False) + "\n")
    return path


def main(name: str, description: str, run: Callable[[bool], Sequence[Ratio]]) -> int:
    """Command line of a benchmark: run it, print the table, save it; 1 if a result was wrong."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--small", action="store_true", help="a few seconds: does it still run?")
    small = parser.parse_args().small
    try:
        rows = run(small)
    except WrongResult as error:
        print(f"WRONG RESULT: {error}")
        return 1
    print(table(rows))
    path = save(name, {"small": small, "rows": [{**asdict(row), "met": row.met} for row in rows]})
    print(f"written to {path}")
    return 0
