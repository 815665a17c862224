"""The picture of docs/codes.md from what benchmarks.codes measured: threshold, cost and error.

`python -m benchmarks.codes --picture docs/codes.png` measures and draws; this module alone draws
the last measurement again.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.harness import RESULTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "codes.png"

STYLES = {
    "replication": ("#6b7280", "s"),
    "product": ("#a16207", "P"),
    "LT, peeling": ("#fb923c", "v"),
    "LT, inactivation": ("#c2410c", "^"),
    "MDS, random": ("#7c3aed", "D"),
    "MDS, Chebyshev": ("#c084fc", "d"),
    "Berrut": ("#db2777", "X"),
    "polar": ("#059669", "o"),
    "Hadamard, 1 round": ("#60a5fa", "o"),
    "Hadamard, rotated": ("#1d4ed8", "o"),
}
OTHERS = ("#111827", "*")
HIGHEST = 1.35  # of answers over s: what lies above is written, so that the rest can be told apart
SELECTS = ("replication",)  # nothing is added up: no rounding to show
LEFT_OUT = ("uncoded",)  # all N answers, no cost, no error: every line of it lies on a frame

Rows = Sequence[Mapping[str, Any]]


def draw(rows: Rows, path: Path) -> None:
    """Write the PNG: three panels against N, a line for each code."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.6), layout="constrained")
    threshold, cost, error = figure.subplots(1, 3)
    for code in dict.fromkeys(row["code"] for row in rows if row["code"] not in LEFT_OUT):
        colour, marker = STYLES.get(code, OTHERS)
        found = sorted((row for row in rows if row["code"] == code), key=lambda r: r["workers"])
        sizes = [row["workers"] for row in found]
        line = {"color": colour, "marker": marker, "ms": 5, "lw": 1.6}
        mean = [row["mean"] for row in found]
        if max(mean) > HIGHEST:
            threshold.annotate(
                f"{code}: {min(mean):.2f} to {max(mean):.2f}",
                (sizes[0], HIGHEST),
                color=colour,
                va="top",
            )
        else:
            threshold.plot(sizes, mean, label=code, **line)
            _up_to(threshold, sizes, mean, [row["p99"] for row in found], colour)
        if code not in SELECTS:
            label = code if max(mean) > HIGHEST else None
            cost.plot(sizes, [row["encode"] for row in found], label=label, **line)
            cost.plot(sizes, [row["decode"] for row in found], **line | {"lw": 1.2, "ls": ":"})
            median = [row["error_median"] for row in found]
            error.plot(sizes, median, **line)
            _up_to(error, sizes, median, [row["error_worst"] for row in found], colour)
    threshold.set(title="Answers needed, over s", ylabel="mean, and up to the 99th percentile")
    threshold.set_ylim(0.99, HIGHEST + 0.01)
    cost.set(title="Encoding (solid), decoding (dotted)", ylabel="time over a memory copy")
    error.set(title="Error, float32 blocks", ylabel="relative; median, and up to the worst of ten")
    cost.set_yscale("log")
    error.set_yscale("log")
    for axis in (threshold, cost, error):
        axis.set_xscale("log", base=2)
        ticks = sorted({row["workers"] for row in rows})
        axis.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axis.set_xlabel("workers N")
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=6, frameon=False)
    figure.savefig(path, dpi=110)


def _up_to(
    axis: Axes, at: Sequence[float], low: Sequence[float], high: Sequence[float], colour: str
) -> None:
    axis.vlines(at, low, high, color=colour, lw=1.2, alpha=0.45)


def main() -> int:
    """Draw the last measurement."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.codes_picture",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--output", type=Path, default=PICTURE)
    output: Path = parser.parse_args().output
    measured = RESULTS / "codes.json"
    if not measured.exists():
        parser.error(f"{measured} is not there: run python -m benchmarks.codes first")
    draw(json.loads(measured.read_text())["rows"], output)
    print(f"written to {output}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
