"""Learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from polarlambda.errors import BadInput
from polarlambda.optimization.state import Figures

__all__ = ["draw"]

COLOURS = ("#0b7285", "#e8590c", "#5f3dc4", "#2b8a3e", "#868e96")
Curve = tuple[str, Sequence[Figures]]


def draw(path: Path, curves: Sequence[Curve], *, maximize: bool, title: str = "") -> None:
    """Write a PNG with the score against evaluations and against seconds, one line a curve.

    The band is one standard error of the score. Raises `BadInput` without matplotlib.
    """
    try:
        import numpy as np
        from matplotlib.figure import Figure
    except ImportError as error:
        raise BadInput("a picture needs matplotlib: pip install 'polarlambda[report]'") from error
    figure = Figure(figsize=(11, 4.2), dpi=130, facecolor="white")
    left, right = figure.subplots(1, 2, sharey=True)
    for colour, (name, history) in zip(COLOURS * len(curves), curves, strict=False):
        scored = [f for f in history if f.score is not None]
        if not scored:
            continue
        score = np.array([f.score for f in scored])
        spread = np.array([f.score_error for f in scored])
        for axes, place in (
            (left, [f.evaluations for f in scored]),
            (right, [f.seconds for f in scored]),
        ):
            axes.plot(place, score, color=colour, linewidth=1.6, label=name)
            band = (score - spread, score + spread)
            axes.fill_between(place, *band, color=colour, alpha=0.15, linewidth=0)
    left.set_xlabel("evaluations of the objective")
    right.set_xlabel("seconds")
    left.set_ylabel("score (larger is better)" if maximize else "score (smaller is better)")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    left.legend(frameon=False, loc="best")
    figure.suptitle(title or "Learning curve", x=0.02, ha="left", fontsize=12)
    figure.tight_layout()
    figure.savefig(path)
