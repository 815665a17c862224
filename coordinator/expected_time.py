"""Expected time of a run under a delay model, with and without coding, the load of the code
charged.

Coded: N workers with blocks of n / s rows in the dtype that holds the coded sums, done at the
decisive arrival. Uncoded: the same N workers with the smaller blocks of n / N rows in the dtype
that the code `uncoded` stores, done when the last one has answered. A delay is added to the task's
own time, whatever the task.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.stops import FRESH
from blockstore.subtasks import Subtasks
from coordinator.platform import Platform
from coordinator.start_rate import start_rate
from coordinator.starts import begin_times
from coordinator.task_time import BlockWork, finish_seconds, task_time
from coordinator.waiting import waiting_times
from coordinator.window import OVERLAP
from polarcodes import ErasureCode, make_code
from polarcodes.delays import DelayModel

SEED = 2309_00682  # fixed: two plans of the same run agree
MOST_DRAWS = 1 << 21
MOST_WAITS = 200_000  # simulated one by one where workers wait for a free environment
PAYS = 0.95  # coding must save 5 % of the time, or the plan says that it does not pay


@dataclass(frozen=True)
class ExpectedTime:
    """Seconds from the first invoke to the result: mean, 95 % and 99 % quantile over simulated
    rounds.

    `load` is the rows of a coded block over those of an uncoded one, N / s, and `byte_load` the
    same for their bytes. `task` and `uncoded_task` are undelayed tasks, `finish` is what `coded`
    has for the end, from the decisive answer on.
    """

    code: str
    delays: str
    rounds: int
    load: float
    byte_load: float
    task: float
    coded: float
    coded_p95: float
    coded_p99: float
    finish: float
    uncoded_task: float
    uncoded: float
    uncoded_p95: float
    uncoded_p99: float

    @property
    def pays(self) -> bool:
        """Whether coding saves at least 5 % of the expected time."""
        return self.coded <= PAYS * self.uncoded

    def later(self, seconds: float) -> ExpectedTime:
        """The same with another end, that takes so many seconds more, with and without coding."""
        names = ["coded", "coded_p95", "coded_p99", "uncoded", "uncoded_p95", "uncoded_p99"]
        names.append("finish")
        return replace(self, **{name: getattr(self, name) + seconds for name in names})

    @property
    def verdict(self) -> str:
        """Whether coding pays, and by which times."""
        if self.code == "uncoded":
            return f"{self.judgement}: expected {self.coded:.2f} s ({self.delays})."
        both = f"{self.coded:.2f} s with coding, {self.uncoded:.2f} s without ({self.delays})"
        return f"{self.judgement}: expected {both}."

    @property
    def judgement(self) -> str:
        """Whether coding pays, without figures."""
        if self.code == "uncoded":
            return "No coding: every worker is needed"
        if self.pays:
            return "Coding pays"
        return (
            "Coding does not pay here (it still survives lost workers; for time alone use the "
            "code `uncoded`)"
        )


def expected_time(
    code: ErasureCode,
    work: BlockWork,
    source_dtype: np.dtype[Any],
    memory_mb: int,
    delays: DelayModel,
    platform: Platform,
    rounds: int = 1000,
    counts: NDArray[np.intp] | None = None,
    shares: Subtasks | None = None,
    plain: BlockWork | None = None,
) -> ExpectedTime:
    """Simulate `rounds` rounds of the coded and of the uncoded run on the same delays (fixed
    seed). `counts`: thresholds of the code if they are known (`coordinator.waiting`).

    With `shares` each worker has several blocks of `work`, and sends each answer when it is done.
    `plain`: the work of an uncoded worker, where it is not that of a smaller block of one matrix.
    """
    shares = shares or Subtasks.single(code.workers)
    workers, data_blocks = shares.workers, code.data_blocks
    plain = plain or uncoded_work(work, data_blocks, workers, source_dtype)
    rounds = affordable(rounds, workers)
    if workers > platform.concurrency:
        rounds = min(rounds, max(20, MOST_WAITS // workers))
    extra = delays.sample(np.random.default_rng(SEED), rounds, workers)
    together = min(workers, platform.concurrency)
    moments = answer_moments(work, memory_mb, shares, platform)
    coded_task = float(moments[-1])
    plain_task = task_time(plain, memory_mb, together, platform).seconds
    start = begin_times(extra + coded_task, platform, starts_of(work, shares, platform)) + extra
    answers = (start[:, :, None] + moments).reshape(rounds, -1)[:, list(shares.blocks)]
    coded = waiting_times(code, answers, counts)
    answered = data_blocks if counts is None else math.ceil(counts.mean())
    spread = max(0.0, float(coded.mean()) - coded_task)
    finish = finish_seconds(work, data_blocks, platform, answered, spread)
    coded += finish
    plain_rate = starts_of(plain, Subtasks.single(workers), platform)
    plain_start = begin_times(extra + plain_task, platform, plain_rate) + extra
    uncoded = (plain_start + plain_task).max(axis=1)
    spread = max(0.0, float(uncoded.mean()) - plain_task)
    uncoded += finish_seconds(plain, workers, platform, workers, spread)
    return ExpectedTime(
        code=code.name,
        delays=delays.name,
        rounds=rounds,
        load=code.workers / data_blocks,
        byte_load=shares.per_worker * work.block_bytes / plain.block_bytes,
        task=coded_task,
        coded=float(coded.mean()),
        coded_p95=float(np.quantile(coded, 0.95)),
        coded_p99=float(np.quantile(coded, 0.99)),
        finish=finish,
        uncoded_task=plain_task,
        uncoded=float(uncoded.mean()),
        uncoded_p95=float(np.quantile(uncoded, 0.95)),
        uncoded_p99=float(np.quantile(uncoded, 0.99)),
    )


def planned_shares(workers: int, subtasks: int, per_object: int = 1) -> Subtasks | None:
    """Who would have which blocks, None if one each: their places are random, as the encoder's."""
    if subtasks == 1:
        return None
    places = np.random.default_rng(SEED).permutation(workers * subtasks).tolist()
    return Subtasks(workers, subtasks, per_object, tuple(places))


def answer_moments(
    work: BlockWork, memory_mb: int, shares: Subtasks, platform: Platform
) -> NDArray[np.float64]:
    """(r,) seconds after its start at which an undelayed worker has put each of its r answers.

    Every task costs its tiles, a look for the stop marker if it begins when the invocation is no
    longer fresh, and, with the last task of an object, a PUT; x and the start of the function are
    paid once.
    """
    together = min(shares.workers, platform.concurrency)
    whole = task_time(work, memory_mb, together, platform)
    once = platform.worker_overhead_seconds + platform.s3_request_seconds
    once += work.x_bytes / platform.s3_read_rate
    each = whole.seconds - once - whole.write
    group = shares.per_object
    write = whole.write + (group - 1) * work.answer_bytes / platform.s3_write_rate
    moments, now = [], once
    for _ in range(shares.per_worker // group):
        for _ in range(group):
            now += each + (platform.s3_request_seconds if now > FRESH else 0.0)
        now += write
        moments += [now] * group
    return np.array(moments)


def starts_of(work: BlockWork, shares: Subtasks, platform: Platform) -> float:
    """Workers a second that a tree starts, each with `shares.per_worker` blocks of `work`."""
    tiles, objects = shares.per_worker * work.objects, shares.per_worker // shares.per_object
    workers = min(shares.workers, int(OVERLAP * platform.concurrency))
    return start_rate(workers, tiles, 1 if work.x_bytes else 0, objects, platform)


def uncoded_work(
    work: BlockWork, data_blocks: int, workers: int, source_dtype: np.dtype[Any]
) -> BlockWork:
    """The block of an uncoded run on as many workers: s / N of the rows, in the dtype of `uncoded`.

    Coded sums of integers need a wider dtype than the integers themselves: the code pays for that
    too. Tiles keep their size.
    """
    rows = max(1, -(-work.rows * data_blocks // workers))
    plain = make_code("uncoded", workers=workers, data_blocks=workers)
    itemsize = plain.encoded_dtype(source_dtype, *full_range(source_dtype)).itemsize
    smaller = replace(work, rows=rows, itemsize=itemsize)
    share = smaller.block_bytes / work.block_bytes
    return replace(smaller, objects=max(1, math.ceil(work.objects * share)))


def full_range(dtype: np.dtype[Any]) -> tuple[float, float]:
    """The range that a plan assumes before the data are read.

    Integers may use all of their dtype. Floating-point numbers are taken to be far from the limits
    of theirs.
    """
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return int(limits.min), int(limits.max)
    return (0, 1) if dtype.kind == "b" else (-1.0, 1.0)


def affordable(rounds: int, workers: int) -> int:
    """Fewer rounds for thousands of workers, where chance averages out: 64 MB of float64 at a
    time."""
    return min(rounds, max(20, MOST_DRAWS // workers))
