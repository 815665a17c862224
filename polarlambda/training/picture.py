"""Loss against time: a picture and a CSV file."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from polarlambda.errors import BadInput
from polarlambda.training.trained import COLUMNS, row

if TYPE_CHECKING:
    from blockstore.trainings import Facts

DPI = 120


def history_csv(history: Sequence[Facts]) -> str:
    """A line for every iteration, under a line of names (`COLUMNS`); every digit is kept."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(COLUMNS)
    lines.writerows(row(facts) for facts in history)
    return text.getvalue()


def check_picture() -> None:
    """Raise `BadInput` unless pictures can be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise BadInput(
            "a picture needs matplotlib: pip install 'polarlambda[report]', or leave it out"
        ) from error


def draw_history(history: Sequence[Facts], path: Path, title: str) -> None:
    """Draw loss and gradient norm against seconds to `path`, of the format that its name says.

    Raises `BadInput` without matplotlib.
    """
    check_picture()
    from matplotlib.figure import Figure

    seconds = [facts.seconds for facts in history]
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    figure.suptitle(title, fontsize=10)
    exact = [facts.exact for facts in history]
    for axes, values, name in (
        (left, [facts.loss for facts in history], "loss"),
        (right, [facts.norm for facts in history], "norm of the gradient"),
    ):
        axes.plot(seconds, values, color="#1f5fa8", linewidth=1.5, marker="o", markersize=3)
        partial = [i for i, whole in enumerate(exact) if not whole]
        if partial:
            axes.plot(
                [seconds[i] for i in partial],
                [values[i] for i in partial],
                linestyle="none",
                marker="o",
                markersize=4,
                markerfacecolor="white",
                markeredgecolor="#1f5fa8",
                label="estimated, or with rows left out",
            )
            axes.legend(frameon=False)
        axes.set_xlabel("seconds since the training began")
        axes.set_ylabel(name)
        axes.grid(color="0.9")
        axes.spines[["top", "right"]].set_visible(False)
    positive = [facts.norm for facts in history if facts.norm > 0]
    if positive:
        right.set_yscale("log")
    left.set_ylim(*_room([facts.loss for facts in history]))
    figure.savefig(path, dpi=DPI)


def _room(losses: Sequence[float]) -> tuple[float, float]:
    """Limits that show the descent: what is far above the start is cut off."""
    low, high = min(losses), min(max(losses), 1.5 * losses[0] if losses[0] > 0 else max(losses))
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin
