"""The demo's picture: a response map coming out of the noise, and the error curves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes

    from polarlambda.demo.story import Moment, Story

    Array = np.ndarray[Any, Any]

INK, CODED, UNCODED, GAP = "#1f2933", "#0b7285", "#e8590c", "#f4c9a8"


def draw(
    path: Path,
    *,
    coded: Story,
    uncoded: Story,
    truth: Array,
    fold: Any,
    photograph: Array,
    kernel: Array,
) -> None:
    """Write the picture to ``path`` (PNG, 2400 x 1650 pixels).

    ``fold`` turns a product (n,) into the response map (height, width) of the photograph shown;
    ``photograph`` (h, w, 3) uint8 is that photograph; ``kernel`` (64, 64, 3) is the filter x.
    """
    import numpy as np
    from matplotlib.figure import Figure

    figure = Figure(figsize=(16, 11), dpi=150, facecolor="white")
    grid = figure.add_gridspec(
        3, 6, height_ratios=(1, 1, 1.05), left=0.055, right=0.985, top=0.845, bottom=0.065,
        wspace=0.06, hspace=0.32,
    )  # fmt: skip
    low, high = np.percentile(fold(truth), (0.5, 99.5))

    def show(row: int, column: int, title: str, image: Array, colour: str = INK) -> Axes:
        axes = figure.add_subplot(grid[row, column])
        axes.imshow(image, cmap=_greys(), vmin=low, vmax=high, interpolation="nearest")
        axes.set_title(title, fontsize=12.5, color=colour, pad=6)
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set(color=colour, linewidth=1)
        return axes

    show(0, 0, "one of the photographs\nthat the rows come from", photograph)
    show(1, 0, "the filter x\n(64 × 64 × 3 weights)", (kernel - kernel.min()) / np.ptp(kernel))
    for column, moment in enumerate(_chosen(coded, 5), start=1):
        exact = moment is coded.end
        error = "exact" if exact else f"error {moment.error:.0%}"
        title = f"{moment.seconds:.1f} s\n{moment.arrivals} answers, {error}"
        show(0, column, title, fold(moment.value), CODED)
        rival = uncoded.at(moment.seconds)
        if rival is None:
            image, title = np.full(fold(truth).shape, np.nan), "uncoded:\nnothing yet"
        else:
            image = fold(rival.value)
            title = f"uncoded: {rival.arrivals} of\n{uncoded.workers} blocks are there"
        show(1, column, title, image, UNCODED)

    _curves(figure.add_subplot(grid[2, :]), coded, uncoded)
    figure.text(
        0.055, 0.952, "A product that does not wait for its stragglers",
        fontsize=23, fontweight="bold", color=INK,
    )  # fmt: skip
    rows = len(truth)
    figure.text(
        0.055, 0.912,
        f"A x for {rows:,} shuffled patches, folded back to one photograph. First row: "
        f"{coded.workers} coded workers. Second row: {uncoded.workers} uncoded workers, same "
        "delays, same moments.",
        fontsize=12.5, color=INK,
    )  # fmt: skip
    figure.savefig(path)


def _greys() -> Any:
    import matplotlib

    return matplotlib.colormaps["gray"].with_extremes(bad=GAP)


def _chosen(story: Story, count: int) -> list[Moment]:
    """``count`` moments: shares of the answers that show the estimate change, and the last."""
    last = story.end
    wanted = [last.arrivals * share for share in (0.3, 0.6, 0.8, 0.95)][: count - 1]
    estimates = story.moments[:-1] or story.moments
    return [min(estimates, key=lambda m: abs(m.arrivals - goal)) for goal in wanted] + [last]


def _curves(axes: Axes, coded: Story, uncoded: Story) -> None:
    """Error against time of both runs; the coded one with its 95 % bar."""
    end = uncoded.end.seconds * 1.04
    estimates = coded.moments[:-1]
    seconds = [m.seconds for m in estimates] + [coded.end.seconds]
    bars = [m.bar for m in estimates]
    axes.fill_between(
        seconds, 0, [*bars, bars[-1]], step="post", color=CODED, alpha=0.13, linewidth=0,
        label="coded: 95 % error bar, from the arrivals alone",
    )  # fmt: skip
    axes.plot(
        [*seconds, coded.end.seconds, end],
        [*(m.error for m in estimates), estimates[-1].error, 0, 0],
        drawstyle="steps-post", color=CODED, linewidth=2.4, label="coded: true error",
    )  # fmt: skip
    axes.plot(
        [*(m.seconds for m in uncoded.moments), end],
        [*(m.error for m in uncoded.moments), uncoded.end.error],
        drawstyle="steps-post", color=UNCODED, linewidth=2.4, label="uncoded: true error",
    )  # fmt: skip
    for story, colour, name, side in (
        (coded, CODED, "coded", "center"),
        (uncoded, UNCODED, "uncoded", "right"),
    ):
        axes.axvline(story.end.seconds, color=colour, linewidth=1.2, linestyle=(0, (4, 3)))
        axes.annotate(
            f"{name}: exact after {story.end.seconds:.1f} s, ${story.result.cost or 0:.5f}",
            (story.end.seconds, 1.56), ha=side, va="center", fontsize=12.5, color=colour,
            annotation_clip=False,
        )  # fmt: skip
    axes.set(xlim=(0, end), ylim=(0, 1.5))
    axes.set_xlabel("seconds since the workers were invoked", fontsize=12, color=INK)
    axes.set_ylabel("relative error of A x", fontsize=12, color=INK)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e4e7eb")
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=12, loc="upper right", bbox_to_anchor=(0.93, 0.98))
