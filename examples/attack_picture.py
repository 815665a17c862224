"""Pictures of attacked digits, and how many are fooled by the number of evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from examples.attack import classifier, victims
from polarlambda.optimization.state import Figures

__all__ = ["show"]

COLUMNS = 6


def show(path: Path, changes: np.ndarray, histories: Sequence[Sequence[Figures]]) -> None:
    """Write a PNG: each digit before and after its change (k, 64), and the success rate."""
    from matplotlib.figure import Figure

    shown = min(COLUMNS, len(changes))
    figure = Figure(figsize=(13, 4.6), dpi=130, facecolor="white")
    grid = figure.add_gridspec(2, shown + 3, wspace=0.3, hspace=0.45, left=0.03, right=0.98)
    images, _ = victims()
    for column in range(shown):
        pixels = images[column]
        changed = np.clip(pixels + changes[column], 0, 16)
        for row, picture in enumerate((pixels, changed)):
            axes = figure.add_subplot(grid[row, column])
            axes.imshow(picture.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
            axes.set_xticks([])
            axes.set_yticks([])
            named = classifier().predict(picture[None] / 16)[0]
            axes.set_title(f'read as "{named}"', fontsize=10)
    axes = figure.add_subplot(grid[:, shown + 1 :])
    needed = sorted(h[-1].evaluations for h in histories if h and (h[-1].score or 1.0) <= 0)
    steps = [0, *needed]
    axes.step(steps, np.arange(len(steps)) / len(histories), where="post", color="#0b7285")
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("evaluations for an image")
    axes.set_ylabel("share of images that are fooled")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)
