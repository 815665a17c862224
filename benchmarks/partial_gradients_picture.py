"""Figure 1 of the paper as a picture: time and communication volume by tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

COLOURS = {
    "cpgc": "#1f77b4",
    "rcsc": "#2a9d5c",
    "uc-mmc": "#d1495b",
    "mcc": "#777777",
    "searched": "#111111",
    "bound": "#e0a030",
}
LABELS = {
    "cpgc": "CPGC",
    "rcsc": "RCSC",
    "uc-mmc": "UC-MMC",
    "mcc": "MCC",
    "searched": "searched",
    "bound": "no schedule is below",
}
STYLES = {"searched": "--", "bound": ":"}


def draw(
    found: dict[str, dict[str, list[float]]],
    tolerances: Sequence[float],
    published: dict[str, Sequence[float]],
    path: Path,
) -> None:
    """Write the PNG: lines are ours, crosses are the published times."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    percent = [100 * tolerance for tolerance in tolerances]
    panels = zip(axes, (("time", "mean time (s)"), ("volume", "gradients sent")), strict=True)
    for axis, (quantity, label) in panels:
        for name, colour in COLOURS.items():
            axis.plot(
                percent,
                found[name][quantity],
                STYLES.get(name, "-"),
                marker="o",
                ms=3.5,
                color=colour,
                label=LABELS[name],
            )
            if quantity == "time" and name in published:
                axis.plot(percent, published[name], "x", ms=8, mew=1.4, color=colour)
        axis.set(xlabel="tolerance: tasks that may be missing (%)", ylabel=label, ylim=(0, None))
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].plot([], [], "x", ms=8, mew=1.4, color="#444444", label="published")
    axes[0].set_title("How long an iteration takes")
    axes[1].set_title("How much the workers send by then")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=7, frameon=False)
    figure.suptitle("20 workers, 20 tasks, 3 for each worker; delays of arXiv 1811.09271", size=11)
    figure.savefig(path, dpi=110)
    plt.close(figure)
