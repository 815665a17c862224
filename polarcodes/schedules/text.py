"""Schedules as text: a row for each position in the order, a column for each worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polarcodes.schedules.schedule import Codeword, Schedule

_COLUMNS = 100  # characters of a line
_TERMS = 4  # longer sums are cut

_SENDING = {
    "each": "every result is sent at once",
    "together": "all results of a worker are sent together",
    "sum": "a worker sends the sum of its results",
}


def schedule_text(schedule: Schedule) -> str:
    """Return the heading and as many workers as fit a line of 100 characters."""
    head = (
        f"{schedule.name}: {schedule.workers} workers, {schedule.load} codewords each, "
        f"{schedule.tasks} tasks; {_SENDING[schedule.sending]}"
    )
    labels = ["worker", *(f"row {t + 1}" for t in range(schedule.load))]
    width = max(map(len, labels))
    lines = [label.ljust(width) for label in labels]
    shown = 0
    for worker in range(schedule.workers):
        cells = [str(worker + 1)]
        cells += [_sum(schedule.codeword(worker, t)) for t in range(schedule.load)]
        width = max(map(len, cells))
        if shown and len(lines[0]) + 2 + width > _COLUMNS:
            break
        lines = [f"{line}  {cell.rjust(width)}" for line, cell in zip(lines, cells, strict=True)]
        shown += 1
    rest = schedule.workers - shown
    return "\n".join([head, *lines, *([f"and {rest} workers more"] if rest else [])])


def _sum(codeword: Codeword) -> str:
    text = ""
    for task, value in list(zip(*codeword, strict=True))[:_TERMS]:
        sign = "-" if value < 0 else "+" if text else ""
        size = "" if abs(value) == 1 else f"{abs(value):.3g} "
        text += f"{sign}{size}W{task + 1}"
    rest = len(codeword.tasks) - _TERMS
    return text if rest <= 0 else f"{text}+({rest} more)"
