"""What the decode function does with a task, and what it leaves when that fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore import decode_keys, documents
from blockstore.bucket import Bucket
from blockstore.errors import CorruptObject, StoreUnavailable
from coordinator.check import Check
from coordinator.decode_job import DecodeJob, put_done
from coordinator.decode_tasks import DecodeTask
from coordinator.stored_answers import AnswerLost
from coordinator.windows import Pools, WindowMemory

__all__ = ["OutOfTime", "failure", "work"]

TIME_RESERVE = 5.0  # seconds kept for saying that the time is up
MAX_MESSAGE = 1000
# Another attempt may have more luck with these.
PASSING = (StoreUnavailable, CorruptObject, MemoryError, OSError)


class OutOfTime(OSError):
    """The platform's time limit is near: an attempt that meets a faster store may be in time."""


def work(
    bucket: Bucket, task: DecodeTask, time_left: Callable[[], float], memory: WindowMemory
) -> Check:
    """Do the windows or parts of a task and write down that they are done.

    memory : of the windows, which a warm environment keeps from one task to the next.

    Raises `AnswerLost`, `OutOfTime`, `polarcodes.InvalidPlan`, `blockstore.errors.StoreError`.
    Memory: `coordinator.budget.chunk_memory` and one window.
    """
    job, names = DecodeJob.load(bucket, task.run, task.decoding)
    windows = task.stage == "window"
    solve = job.load_decoder(bucket, names).apply if windows else _no_columns
    check = Check()
    numbers = range(task.first, task.last)
    with Pools(memory=memory) as pools:
        stages = job.stages(bucket, solve, job.target(bucket), pools)
        if windows:
            for number in numbers:
                _in_time(task, number, time_left)
                check += stages.window(number)
        else:
            _in_time(task, task.first, time_left)
            for number, _ in zip(numbers, pools.writers.map(stages.part, numbers), strict=True):
                if number + 1 < task.last:
                    _in_time(task, number + 1, time_left)
    put_done(bucket, job, task.stage, task.worker, check)
    return check


def _in_time(task: DecodeTask, number: int, time_left: Callable[[], float]) -> None:
    """Raise `OutOfTime` unless there is time for another window or part."""
    if time_left() < TIME_RESERVE:
        raise OutOfTime(
            f"the function's time limit is near at {task.stage} {number}: give it more "
            "time (DecodeTimeout) or memory (DecodeMemory)"
        )


def failure(bucket: Bucket, task: DecodeTask, exc: Exception) -> dict[str, Any]:
    """Write the error record of `exc`; returns it."""
    record = {
        "version": 1,
        "type": type(exc).__name__,
        "message": str(exc)[:MAX_MESSAGE],
        "fatal": not isinstance(exc, PASSING),
        "place": exc.place if isinstance(exc, AnswerLost) else None,
    }
    key = decode_keys.decode_error_key(
        task.run, task.decoding, task.stage, task.worker, task.attempt
    )
    bucket.put(key, documents.dump(record), content_type="application/json")
    return record


def _no_columns(Y: NDArray[Any], out: NDArray[Any]) -> Check:
    raise AssertionError(f"parts are made of pieces, not of {np.shape(Y)} answers")
