"""Several blocks for each worker: how many there may be, and where they stand in the code."""

from __future__ import annotations

import numpy as np

from blockstore.subtasks import MOST_SUBTASKS, MOST_WORKERS, Subtasks
from encoder.errors import SubtasksRefused
from polarcodes import ErasureCode
from polarcodes.randomness import words
from polarcodes.schedules import ScheduleCode

STREAM = 0x706C616365  # of the seed's words: none that a code draws from

__all__ = ["check_subtasks", "share_out"]


def check_subtasks(subtasks: object, per_object: object = 1) -> None:
    """Raise `SubtasksRefused` unless r is 1 to 64 and `per_object` divides it."""
    if type(subtasks) is not int or not 1 <= subtasks <= MOST_SUBTASKS:
        raise SubtasksRefused(
            f"subtasks must be an integer in 1..{MOST_SUBTASKS}, got {subtasks!r}"
        )
    if type(per_object) is not int or per_object < 1 or subtasks % per_object:
        raise SubtasksRefused(
            f"results per object must divide subtasks = {subtasks}, got {per_object!r}"
        )


def share_out(code: ErasureCode, rows: int, subtasks: int, per_object: int = 1) -> Subtasks | None:
    """Which blocks of `code` each worker has; None when it is one each.

    The places are a permutation drawn from the code's seed; a schedule says itself which codeword
    is whose. Raises `SubtasksRefused` for an r that
    does not divide the code's blocks, or for more data blocks than the matrix has rows.
    """
    check_subtasks(subtasks, per_object)
    if code.workers // subtasks > MOST_WORKERS:
        raise SubtasksRefused(
            f"workers must be at most {MOST_WORKERS:,}, got {code.workers // subtasks:,}: make the "
            "code with fewer, or give each more subtasks"
        )
    if subtasks == 1:
        return None
    if code.workers % subtasks:
        raise SubtasksRefused(
            f"{code.workers} coded blocks cannot be shared out {subtasks} to a worker: make the "
            f"code with workers x {subtasks} blocks"
        )
    if code.data_blocks > rows:
        workers, most = code.workers // subtasks, rows * subtasks // code.data_blocks
        raise SubtasksRefused(
            f"subtasks = {subtasks} makes {code.data_blocks} data blocks for {workers} workers, "
            f"more than the matrix has rows ({rows}): "
            + (f"use {most} subtasks or fewer" if most > 1 else "use one task for each worker")
        )
    places = range(code.workers)
    if not isinstance(code, ScheduleCode):
        places = np.argsort(words(code.workers, code.seed, STREAM), kind="stable").tolist()
    return Subtasks(code.workers // subtasks, subtasks, per_object, tuple(places))
