"""The decoder of schedules: all messages of a run one by one, over one dense elimination.

The reference knows all equations at once and factors them (QR) a single time; the decoder says
after every message which tasks are recovered. A delayed run of the paper's timing model, until all
are.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.harness import Ratio, WrongResult, main, time_pairs
from polarcodes.schedules import Recovery, Schedule, make_schedule, shifted_exponential

Message = tuple[int, int]


def arrival_order(schedule: Schedule) -> list[Message]:
    """(worker, message) of one round, in the order of arrival."""
    seconds = shifted_exponential(np.random.default_rng(0), 1, schedule.workers)
    times = schedule.message_times(seconds)[0]
    order = np.argsort(times, axis=None, kind="stable")
    workers, messages = np.unravel_index(order, times.shape)
    return list(zip(workers.tolist(), messages.tolist(), strict=True))


def decoded(schedule: Schedule, order: list[Message]) -> Recovery:
    """The state after the message that completes all tasks."""
    state = schedule.recovery()
    for worker, message in order:
        if state.add(worker, message) and state.complete():
            return state
    raise WrongResult(f"{schedule!r} does not recover all tasks")


def measure(name: str, workers: int, load: int, pairs: int) -> list[Ratio]:
    """Rows of one schedule."""
    schedule = make_schedule(name, workers, load)
    order = arrival_order(schedule)
    state = decoded(schedule, order)
    weights = state.weights()
    rows = np.zeros((len(weights.messages), workers))
    for row, (worker, message, part) in zip(rows, weights.messages, strict=True):
        equation = schedule.equations(worker, message)[part]
        row[equation.tasks] = equation.values
    wanted = np.ones((1, workers)) if weights.is_sum else np.eye(workers)
    error = float(np.abs(weights.matrix @ rows - wanted).max())
    if not error <= 1e-9:
        raise WrongResult(f"{schedule!r}: the weights miss the tasks by {error:.1e}")
    label = f"{name} K={workers} r={load}, {state.messages} messages"
    return [
        time_pairs(
            f"{label}: all / one QR",
            lambda: decoded(schedule, order),
            lambda: np.linalg.qr(rows),
            pairs=pairs,
        ),
        time_pairs(
            f"{label}: weights / one QR", state.weights, lambda: np.linalg.qr(rows), pairs=pairs
        ),
    ]


def run(small: bool) -> Sequence[Ratio]:
    """All rows."""
    workers, pairs = (60, 1) if small else (1000, 3)
    names = ("uc-mmc", "rcsc", "mcc", "gradient")
    return [row for name in names for row in measure(name, workers, 4, pairs)]


if __name__ == "__main__":
    raise SystemExit(main("recovery", __doc__ or "", run))
