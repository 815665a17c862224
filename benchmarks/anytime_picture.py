"""The picture of docs/anytime.md: convergence by time and by dollars."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

STYLES = {
    ("no coding", "exact"): ("#9aa0a6", ":"),
    ("hadamard", "exact"): ("#1d4ed8", "--"),
    ("hadamard", "anytime"): ("#1d4ed8", "-"),
    ("sub-tasks r=4", "exact"): ("#c2410c", "--"),
    ("sub-tasks r=4", "anytime"): ("#c2410c", "-"),
    ("hadamard", "conjugate"): ("#059669", "-."),
}
LABELS = {"seconds": "simulated time (s)", "dollars": "dollars"}

Curve = tuple[NDArray[np.float64], NDArray[np.float64]]


def draw(panels: dict[str, dict[tuple[str, str], Curve]], delays: str, path: Path) -> None:
    """Write the PNG: a panel for seconds and one for dollars, a line for each scheme and mode."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for axis, (by, curves) in zip(axes, panels.items(), strict=True):
        for key, (grid, excess) in curves.items():
            colour, style = STYLES[key]
            axis.plot(grid, excess, style, color=colour, lw=1.8, label=", ".join(key))
        axis.set(xlabel=LABELS[by], yscale="log", xlim=(0, None))
        axis.grid(alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("suboptimality, over the first")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    figure.suptitle(f"Gradient descent on 20 workers, delays: {delays}", size=11)
    figure.savefig(path, dpi=110)
