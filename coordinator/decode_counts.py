"""What putting a product together asks of the store, counted from how it is cut."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import numpy as np

from coordinator.cost import Usage
from coordinator.cut import Cut, cut_product
from coordinator.decode import DECIDED
from coordinator.form import AnswerForm
from coordinator.judge import answer_error, tolerance
from coordinator.layout import Layout
from coordinator.storage import LIST_PAGE
from coordinator.targets import WHOLE_BYTES, Kind, part_rule
from coordinator.windows import piece_group
from polarcodes import ErasureCode

__all__ = [
    "StageCounts",
    "call_requests",
    "plan_arrays",
    "stage_counts",
    "target_requests",
    "whole_requests",
]

DENSE = ("mds",)  # their plan is one matrix (s, s), which takes long to compute where s is large


@dataclass(frozen=True)
class StageCounts:
    """Requests of all windows and of all parts; `pieces` wait between them if no part lies in one
    window. window_puts: parts or pieces that windows write; part_gets: pieces that parts read."""

    windows: int
    parts: int
    window_puts: int
    part_gets: int

    @property
    def part_calls(self) -> int:
        """Parts that a second stage makes."""
        return self.parts if self.part_gets else 0


def stage_counts(layout: Layout, cut: Cut, dtype: np.dtype[Any]) -> StageCounts:
    """Count what `coordinator.windows.Stages` does. Cost: O(parts log(windows))."""
    windows, parts = len(cut.windows), len(cut.parts)
    if cut.direct:
        return StageCounts(windows, parts, parts, 0)
    puts = sum(
        -(-layout.down // piece_group(layout, cut, window, dtype)) for window in range(windows)
    )
    height, tops = layout.block_rows, [first for first, _ in cut.windows]
    gets = 0
    for first, last in cut.parts:
        for block in range(first // height, -(-last // height)):
            top = max(first - block * height, 0)
            bottom = min(last - block * height, height)
            gets += bisect_right(tops, bottom - 1) - bisect_right(tops, top) + 1
    return StageCounts(windows, parts, puts, gets)


def call_requests(
    counts: StageCounts, stage: str, calls: int, units: int, answers: int, arrays: int
) -> Usage:
    """What `calls` of the decode function ask of the store to make `units` windows or parts: their
    job, the plan's arrays, answers or pieces; parts or pieces, and a record that each is done."""
    if stage == "part":
        gets = counts.part_gets * units // max(1, counts.parts)
        return Usage(gets=calls + gets, puts=calls + units)
    puts = counts.window_puts * units // counts.windows
    return Usage(gets=calls * (1 + arrays) + units * answers, puts=calls + puts)


def target_requests(kind: Kind, parts: int) -> tuple[int, int]:
    """(PUTs, LISTs) to begin and finish a product of so many parts, the parts left out."""
    return (2, max(1, -(-parts // LIST_PAGE))) if kind == "npy" else (1, 0)


def whole_requests(form: AnswerForm, kind: Kind) -> tuple[int, int]:
    """(PUTs, LISTs) that write a product which is in memory: `targets.write_product`."""
    shape, columns = form.layout.shape, form.layout.columns
    if kind == "npy" and form.layout.rows * columns * form.dtype.itemsize <= WHOLE_BYTES:
        return 1, 0
    layout = Layout(shape, 1, 1, form.layout.rows, columns)
    cut = cut_product(layout, form.dtype.itemsize, form.layout.rows, part_rule(kind))
    puts, lists = target_requests(kind, len(cut.parts))
    return puts + len(cut.parts), lists


def plan_arrays(code: ErasureCode, form: AnswerForm, answers: int, seed: int) -> tuple[int, int]:
    """(number, bytes) of the arrays of a decoding plan for `answers` answers, or as many more as
    decode, in random order."""
    if code.name in DENSE:
        return 2, 8 * code.data_blocks * (code.data_blocks + 1)
    rules = {"answer_error": answer_error(form), "tolerance": DECIDED * tolerance(form)}
    order = np.random.default_rng(seed).permutation(code.workers)
    count = answers
    while count < code.workers and not code.decodable(order[:count].tolist(), **rules):
        count = min(code.workers, count + max(1, code.workers // 64))
    arrays = code.plan(sorted(order[:count].tolist()), **rules).to_arrays()
    arrays.pop("method")
    return len(arrays), sum(values.nbytes for values in arrays.values())
