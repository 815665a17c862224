"""Workers and redundancy when nobody said them: by simulated time, and explained.

For every candidate (N, s) that the code can have the run is simulated under the delay model with
the code's decodability and its load N / s. The smallest N within 10 % of the fastest wins, and for
that N the largest s within 5 %: workers and storage for a few per cent are money for nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from blockstore.arrays import check_dtype
from blockstore.errors import ArrayRefused
from blockstore.subtasks import MOST_WORKERS
from coordinator.candidates import block_counts, worker_counts
from coordinator.default_code import AUTO, CodeFamily, choose_family
from coordinator.expected_time import ExpectedTime, expected_time, full_range, planned_shares
from coordinator.platform import Platform
from coordinator.refusals import PlanRefused
from coordinator.task_time import BlockWork
from polarcodes import CODE_NAMES, ErasureCode, InvalidCode
from polarcodes.delays import DelayModel, make_delays

WORKERS_WITHIN, BLOCKS_WITHIN = 1.10, 1.05
ROUNDS = 250
TILE_BYTES = 8 << 20  # what the encoder aims at


@dataclass(frozen=True)
class CodeChoice:
    """The code chosen: family and its options, N, s, why, and the expected times that decided.

    `subtasks`: blocks of each worker; the code has that many times N and s.
    """

    code: str
    workers: int
    data_blocks: int
    time: ExpectedTime
    explanation: tuple[str, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    subtasks: int = 1

    @property
    def redundancy(self) -> float:
        """Share of the workers that may be missing at best, (N - s) / N."""
        return 1.0 - self.data_blocks / self.workers

    def make(self, seed: int = 0) -> ErasureCode:
        """The code itself; raises polarcodes.InvalidCode for a seed that it does not have."""
        workers, data_blocks = self.workers * self.subtasks, self.data_blocks * self.subtasks
        return CodeFamily(self.code, self.options).make(workers, data_blocks, seed)


def choose_code(
    shape: tuple[int, int],
    dtype: np.dtype[Any] | str,
    *,
    workers: int | None = None,
    data_blocks: int | None = None,
    redundancy: float | None = None,
    code: str = AUTO,
    options: Mapping[str, Any] | None = None,
    k: int = 1,
    subtasks: int = 1,
    worker_memory_mb: int = 1_769,
    delays: DelayModel | None = None,
    platform: Platform | None = None,
) -> CodeChoice:
    """Choose what is not given of N and s for a matrix of `shape` (n, d) and `dtype`.

    `redundancy` is f / N, the share of redundant workers; it and `data_blocks` exclude each other.
    `code` and `options` are the arguments of `polarcodes.make_code`; "auto" takes what
    measurements recommend (`coordinator.default_code`). `k` is the number of columns of x to
    expect, `subtasks` how many blocks each worker has: N and s are then those of one block each,
    and the code has r times as many. Default delays: `lambda-rare-tail`. Raises PlanRefused naming
    the number to change; polarcodes' own errors for a code, an option, an N or an s that there is
    not. Cost: below a second, some seconds for codes whose threshold has to be searched (lt,
    product, berrut).
    """
    if code not in (AUTO, *CODE_NAMES):
        raise InvalidCode(f"code must be one of {', '.join((AUTO, *CODE_NAMES))}, got {code!r}")
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
    for name, given in (("workers", workers), ("data_blocks", data_blocks)):
        if isinstance(given, int) and given > MOST_WORKERS:
            raise PlanRefused(name, given, MOST_WORKERS, "is more than the workers of a run")
    model = delays if delays is not None else make_delays("lambda-rare-tail")
    matrix = checked_matrix(shape, dtype)
    search = _Search(
        shape,
        matrix,
        code,
        dict(options or {}),
        k,
        subtasks,
        worker_memory_mb,
        model,
        platform or Platform(),
    )
    most_rows = shape[0] // subtasks
    limit = search.platform.concurrency
    sizes = [workers] if workers is not None else worker_counts(code, most_rows, data_blocks, limit)
    best = search.sizes(sizes, data_blocks, redundancy)
    fastest = min(choice.time.coded for choice in best)
    chosen = next(choice for choice in best if choice.time.coded <= WORKERS_WITHIN * fastest)
    why_workers = (
        f"workers = {workers}: given"
        if workers is not None
        else _why_workers(chosen, best, model.name)
    )
    return replace(chosen, explanation=(why_workers, *chosen.explanation, chosen.time.verdict))


@dataclass(frozen=True)
class _Search:
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    code: str
    options: Mapping[str, Any]
    k: int
    subtasks: int
    worker_memory_mb: int
    delays: DelayModel
    platform: Platform

    def sizes(
        self, sizes: Sequence[int], data_blocks: int | None, redundancy: float | None
    ) -> list[CodeChoice]:
        """The best choice for each N that the code has; polarcodes' error if it has none."""
        found, refusal = [], None
        for n in sizes:
            family = choose_family(self.code, self.options, self.dtype, n, self.subtasks)
            try:
                candidates = block_counts(family.name, n, data_blocks, redundancy, self.subtasks)
                found.append(self.best(family, n, candidates))
            except InvalidCode as error:
                refusal = error
        if not found and refusal is not None:
            raise refusal
        return found

    def best(self, family: CodeFamily, workers: int, candidates: Sequence[int]) -> CodeChoice:
        """The largest s within 5 % of the least expected time."""
        times, refusal, r = {}, None, self.subtasks
        for s in candidates:
            try:
                times[s] = self.time(family.make(workers * r, s * r), workers)
            except InvalidCode as error:
                refusal = error
        if not times and refusal is not None:
            raise refusal
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
        reasons = (why, f"code = {family}: {family.why}") if family.why else (why,)
        return CodeChoice(family.name, workers, s, times[s], reasons, family.options, r)

    def time(self, built: ErasureCode, workers: int) -> ExpectedTime:
        """The expected time of a run with this code, whose blocks are shared out to `workers`."""
        coded = built.encoded_dtype(self.dtype, *full_range(self.dtype))
        rows = -(-self.shape[0] // built.data_blocks)
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
            shares=planned_shares(workers, self.subtasks),
        )


def checked_matrix(shape: tuple[int, ...], dtype: np.dtype[Any] | str) -> np.dtype[Any]:
    """The dtype of a matrix that can be encoded; PlanRefused for any other shape or dtype."""
    if len(shape) != 2 or min(shape) < 1:
        raise PlanRefused("shape", tuple(shape), None, "a matrix has two axes, none of them empty")
    try:
        return check_dtype(np.dtype(dtype))
    except (ArrayRefused, TypeError) as error:
        raise PlanRefused("dtype", str(dtype), None, str(error)) from error


def _why_workers(chosen: CodeChoice, best: Sequence[CodeChoice], delays: str) -> str:
    if len(best) == 1:
        return f"workers = {chosen.workers}: the smallest with room for the blocks"
    seen = ", ".join(f"{choice.workers}: {choice.time.coded:.2f} s" for choice in best)
    return (
        f"workers = {chosen.workers}: the fewest within {WORKERS_WITHIN - 1:.0%} of the least "
        f"expected time under {delays} ({seen})"
    )
