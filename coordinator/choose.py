"""Workers and redundancy when nobody said them: by simulated time, and explained.

For every candidate (N, s) the run is simulated under the delay model with the code's real
decodability and its load N / s. Among the powers of two, the smallest N within 10 % of the fastest
wins, and for that N the largest s within 5 %: workers and storage for a few per cent are money for
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from blockstore.arrays import check_dtype
from blockstore.errors import ArrayRefused
from blockstore.subtasks import Subtasks
from coordinator.expected_time import ExpectedTime, expected_time, full_range
from coordinator.platform import Platform
from coordinator.refusals import PlanRefused
from coordinator.task_time import BlockWork
from polarcodes import make_code
from polarcodes.delays import DelayModel, make_delays

LEAST_WORKERS, MOST_WORKERS = 8, 512  # 512: below the default concurrency of an account
REDUNDANCIES = (1 / 64, 1 / 32, 3 / 64, 1 / 16, 3 / 32, 1 / 8, 3 / 16, 1 / 4, 3 / 8)
WORKERS_WITHIN, BLOCKS_WITHIN = 1.10, 1.05
REDUNDANCIES_OF_SEVERAL = (1 / 16, 1 / 8, 1 / 4, 3 / 8, 1 / 2)  # they cost storage, not time
ROUNDS = 250
TILE_BYTES = 8 << 20  # what the encoder aims at


@dataclass(frozen=True)
class CodeChoice:
    """The code chosen: family, N, s, why, and the expected times that decided."""

    code: str
    workers: int
    data_blocks: int
    time: ExpectedTime
    explanation: tuple[str, ...]

    @property
    def redundancy(self) -> float:
        """Share of the workers that may be missing at best, (N - s) / N."""
        return 1.0 - self.data_blocks / self.workers


def choose_code(
    shape: tuple[int, int],
    dtype: np.dtype[Any] | str,
    *,
    workers: int | None = None,
    data_blocks: int | None = None,
    redundancy: float | None = None,
    code: str = "polar",
    k: int = 1,
    subtasks: int = 1,
    worker_memory_mb: int = 1_769,
    delays: DelayModel | None = None,
    platform: Platform | None = None,
) -> CodeChoice:
    """Choose what is not given of N and s for a matrix of `shape` (n, d) and `dtype`.

    `redundancy` is f / N, the share of redundant workers; it and `data_blocks` exclude each other.
    `k` is the number of columns of x to expect, `subtasks` how many blocks each worker has (N and s
    are then those of one block each: the code has r times as many). Default delays:
    `lambda-rare-tail`. `uncoded` has s = N always. Raises PlanRefused naming the number to change;
    polarcodes' own errors for an N or s that the code does not have. Cost: below a second.
    """
    if data_blocks is not None and redundancy is not None:
        raise PlanRefused(
            "redundancy",
            redundancy,
            None,
            f"data_blocks = {data_blocks} is given too; give one of the two",
        )
    if redundancy is not None and not 0.0 <= redundancy < 1.0:
        raise PlanRefused(
            "redundancy",
            redundancy,
            0.125,
            "must be the share of redundant workers, at least 0 and below 1",
        )
    model = delays if delays is not None else make_delays("lambda-rare-tail")
    matrix = checked_matrix(shape, dtype)
    search = _Search(
        shape, matrix, code, k, subtasks, worker_memory_mb, model, platform or Platform()
    )
    sizes = [workers] if workers is not None else _sizes(code, shape[0] // subtasks, data_blocks)
    best = [search.best(n, _blocks(code, n, data_blocks, redundancy, subtasks)) for n in sizes]
    fastest = min(choice.time.coded for choice in best)
    chosen = next(choice for choice in best if choice.time.coded <= WORKERS_WITHIN * fastest)
    why_workers = (
        f"workers = {workers}: given"
        if workers is not None
        else _why_workers(chosen, best, model.name)
    )
    return CodeChoice(
        chosen.code,
        chosen.workers,
        chosen.data_blocks,
        chosen.time,
        (why_workers, *chosen.explanation, chosen.time.verdict),
    )


@dataclass(frozen=True)
class _Search:
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    code: str
    k: int
    subtasks: int
    worker_memory_mb: int
    delays: DelayModel
    platform: Platform

    def time(self, workers: int, data_blocks: int) -> ExpectedTime:
        r = self.subtasks
        built = make_code(self.code, workers=workers * r, data_blocks=data_blocks * r)
        coded = built.encoded_dtype(self.dtype, *full_range(self.dtype))
        rows = -(-self.shape[0] // (data_blocks * r))
        block_bytes = rows * self.shape[1] * coded.itemsize
        work = BlockWork(
            rows=rows,
            columns=self.shape[1],
            itemsize=coded.itemsize,
            objects=-(-block_bytes // TILE_BYTES),
            k=self.k,
            compute_itemsize=np.result_type(coded, np.float32).itemsize,
        )
        return expected_time(
            built,
            work,
            self.dtype,
            self.worker_memory_mb,
            self.delays,
            self.platform,
            ROUNDS,
            shares=None if r == 1 else Subtasks(workers, r, 1, tuple(range(workers * r))),
        )

    def best(self, workers: int, candidates: Sequence[int]) -> CodeChoice:
        times = {s: self.time(workers, s) for s in candidates}
        least = min(time.coded for time in times.values())
        s = max(s for s, time in times.items() if time.coded <= BLOCKS_WITHIN * least)
        share = f"redundancy {100 * (1 - s / workers):.1f} %, blocks {workers / s:.2f} times larger"
        if len(times) == 1:
            why = f"data_blocks = {s}: {share}"
        else:
            others = ", ".join(f"{o}: {times[o].coded:.2f} s" for o in sorted(times) if o != s)
            why = (
                f"data_blocks = {s}: the most within {BLOCKS_WITHIN - 1:.0%} of the least expected "
                f"time, {times[s].coded:.2f} s ({share}; others {others})"
            )
        return CodeChoice(self.code, workers, s, times[s], (why,))


def checked_matrix(shape: tuple[int, ...], dtype: np.dtype[Any] | str) -> np.dtype[Any]:
    """The dtype of a matrix that can be encoded; PlanRefused for any other shape or dtype."""
    if len(shape) != 2 or min(shape) < 1:
        raise PlanRefused("shape", tuple(shape), None, "a matrix has two axes, none of them empty")
    try:
        return check_dtype(np.dtype(dtype))
    except (ArrayRefused, TypeError) as error:
        raise PlanRefused("dtype", str(dtype), None, str(error)) from error


def _sizes(code: str, rows: int, data_blocks: int | None) -> list[int]:
    """Candidate N, ascending: no more blocks than rows need, and room for the s that was given."""
    sizes = [1 << p for p in range(LEAST_WORKERS.bit_length() - 1, MOST_WORKERS.bit_length())]
    if data_blocks is not None and code == "uncoded":
        return [data_blocks]
    if data_blocks is not None:
        wide_enough = max(2, 1 << max(0, int(data_blocks)).bit_length())
        return [wide_enough]
    return [n for n in sizes if n < 2 * rows] or [sizes[0]]


def _blocks(
    code: str,
    workers: int,
    data_blocks: int | None,
    redundancy: float | None,
    subtasks: int,
) -> list[int]:
    if data_blocks is not None:
        return [data_blocks]
    if code == "uncoded":
        return [workers]
    if redundancy is not None:
        frozen = round(redundancy * workers) or int(redundancy > 0)
        return [max(1, workers - frozen)]
    shares = REDUNDANCIES if subtasks == 1 else REDUNDANCIES_OF_SEVERAL
    return sorted({max(1, workers - max(1, round(r * workers))) for r in shares})


def _why_workers(chosen: CodeChoice, best: Sequence[CodeChoice], delays: str) -> str:
    if len(best) == 1:
        return f"workers = {chosen.workers}: the smallest power of two with room for the blocks"
    seen = ", ".join(f"{choice.workers}: {choice.time.coded:.2f} s" for choice in best)
    return (
        f"workers = {chosen.workers}: the fewest within {WORKERS_WITHIN - 1:.0%} of the least "
        f"expected time under {delays} ({seen})"
    )
