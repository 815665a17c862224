"""Slow and obvious counterparts of the recovery decoder."""

from __future__ import annotations

import numpy as np


def equations(schedule, messages) -> np.ndarray:
    """The dense rows of a list of (worker, message)."""
    rows = []
    for worker, message in messages:
        words = schedule.coefficients[:, worker]
        if schedule.sending == "each":
            rows.append(words[message])
        elif schedule.sending == "sum":
            rows.append(words.sum(axis=0))
        else:
            rows.extend(words)
    return np.array(rows).reshape(-1, schedule.tasks)


def in_row_space(rows: np.ndarray, wanted: np.ndarray) -> bool:
    """Whether least squares reaches ``wanted`` from the rows."""
    if not len(rows):
        return False
    weights = np.linalg.lstsq(rows.T, wanted, rcond=1e-10)[0]
    return bool(np.abs(weights @ rows - wanted).max() < 1e-7)


def recovered(schedule, messages) -> tuple[int, ...]:
    """The recovered tasks by the paper's definition."""
    rows = equations(schedule, messages)
    if schedule.sending == "sum":
        known = in_row_space(rows, np.ones(schedule.tasks))
        return tuple(range(schedule.tasks)) if known else ()
    unit = np.eye(schedule.tasks)
    return tuple(m for m in range(schedule.tasks) if in_row_space(rows, unit[m]))


def arrival_order(schedule, task_seconds) -> list[tuple[float, int, int]]:
    """(moment, worker, message) of one round, in the order of arrival."""
    times = schedule.message_times(np.asarray(task_seconds)[None])[0]
    each = [
        (float(times[k, j]), k, j)
        for k in range(schedule.workers)
        for j in range(schedule.messages_per_worker)
    ]
    return sorted(each)
