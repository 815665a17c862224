"""What the product of two encoded matrices will need, cost and take, before it is begun."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from blockstore.memory import pair_memory
from blockstore.pair_tasks import PairTask
from blockstore.pairs import MatrixPair
from coordinator.cost import Cost, Usage, cost
from coordinator.decode_plan import plan_decodings
from coordinator.decode_wish import DecodePlan, DecodeWish
from coordinator.expected_time import SEED, ExpectedTime
from coordinator.form import AnswerForm
from coordinator.machine import PUBLISH_INTERVAL
from coordinator.pace import FASTEST
from coordinator.pair_fits import check_pair_coordinator, check_pair_fits
from coordinator.pair_time import PairWork, expected_pair_time
from coordinator.planned_pairs import planned_task
from coordinator.platform import Platform
from coordinator.prices import Prices, load_prices
from coordinator.run_plan import (
    GB,
    QUICK_ROUNDS,
    ROUNDS,
    run_notes,
)
from coordinator.run_usage import MB_PER_GB
from coordinator.start_rate import task_rate
from coordinator.starts import planned_looks
from coordinator.storage import LIST_PAGE, Stored, stored
from coordinator.waiting import decisive_counts
from polarcodes import code_from_manifest
from polarcodes.delays import DelayModel, make_delays
from polarcodes.grid import GridCode

__all__ = ["PairPlan", "plan_pair"]


_OBJECTS = frozenset(("left", "right", "usage", "run_cost", "encode_cost", "storage_month", "time"))
_OBJECTS |= {"decode", "decode_lambda"}


@dataclass(frozen=True)
class PairPlan:
    """Every figure of a planned product of two coded factors. Sizes in bytes (memory settings in
    MB), times in seconds, cost in dollars.

    `decode`, `decode_lambda`: as in `coordinator.run_plan`. `bytes_read`: by all workers;
    `answer_bytes`: of one; `left` and `right`: what is stored;
    `encode_cost` and `storage_month` are those of both matrices, `run_cost` that of one product.
    """

    shape: tuple[int, int]
    inner: int
    grid: tuple[int, int]
    data_grid: tuple[int, int]
    codes: tuple[str, str]
    workers: int
    data_blocks: int
    block_shape: tuple[int, int]
    block_dtypes: tuple[str, str]
    compute_dtype: str
    left: Stored
    right: Stored
    bytes_read: int
    answer_bytes: int
    worker_memory: int
    worker_memory_mb: int
    worker_timeout: float
    arrivals_mean: float
    arrivals_p99: int
    usage: Usage
    run_cost: Cost
    encode_cost: Cost
    storage_month: Cost
    time: ExpectedTime
    decode: DecodePlan
    decode_lambda: DecodePlan | None
    notes: tuple[str, ...]

    @property
    def storage_bytes(self) -> int:
        """Of both encoded matrices."""
        return self.left.storage_bytes + self.right.storage_bytes

    def to_json(self) -> dict[str, Any]:
        """Plain JSON of every figure; no NaN."""
        plain = {
            name: getattr(self, name) for name in self.__dataclass_fields__ if name not in _OBJECTS
        }
        figures = {k: list(v) if isinstance(v, tuple) else v for k, v in plain.items()}
        return figures | {
            "left": asdict(self.left),
            "right": asdict(self.right),
            "storage_bytes": self.storage_bytes,
            "usage": self.usage.to_json(),
            "run_cost": self.run_cost.to_json(),
            "encode_cost": self.encode_cost.to_json(),
            "storage_month": self.storage_month.to_json(),
            "expected_time": {**asdict(self.time), "pays": self.time.pays},
            "decode": self.decode.to_json(),
            "decode_lambda": self.decode_lambda.to_json() if self.decode_lambda else None,
        }


def plan_pair(
    pair: MatrixPair,
    *,
    worker_memory_mb: int = 1_769,
    worker_timeout: float = 300.0,
    on: Literal["local", "lambda"] = "local",
    coordinator_memory_mb: int = 2_048,
    wish: DecodeWish | None = None,
    prices: Prices | None = None,
    delays: DelayModel | None = None,
    platform: Platform | None = None,
    rounds: int = ROUNDS,
) -> PairPlan:
    """Plan A B for two encoded matrices, or for the manifests that encoding would write.

    Reads nothing, writes nothing, invokes nothing. Parameters as for `coordinator.run_plan`. Raises
    `PlanRefused` for what cannot fit, naming the number to change.
    """
    platform = platform or Platform()
    prices = prices or load_prices()
    delays = delays if delays is not None else make_delays("lambda-rare-tail")
    task = planned_task(pair)
    work = PairWork.of(task)
    check_pair_fits(task, work, worker_memory_mb, worker_timeout, platform)
    if on == "lambda":
        check_pair_coordinator(pair, work, coordinator_memory_mb, platform)
    code = code_from_manifest(pair.code)
    if not isinstance(code, GridCode):
        raise TypeError(f"a pair has the code of a grid, not {code!r}")
    quick = rounds <= QUICK_ROUNDS
    counts = decisive_counts(code, np.random.default_rng(SEED), rounds, quick=quick)
    time = expected_pair_time(pair, code, work, worker_memory_mb, delays, platform, rounds, counts)
    decode, other = plan_decodings(
        AnswerForm.of_pair(pair),
        code,
        math.ceil(counts.mean()),
        0,
        wish or DecodeWish(),
        prices,
        platform,
        coordinator_mb=coordinator_memory_mb if on == "lambda" else 0,
        spread=max(0.0, time.coded - time.task - time.finish),
        compare=not quick,
    )
    time = time.later(decode.seconds - time.finish)
    usage = decode.usage + _usage(pair, task, time, delays, worker_memory_mb, platform)
    if on == "lambda":
        seconds = time.coded * coordinator_memory_mb / MB_PER_GB
        usage += Usage(invokes=1, coordinator_gb_seconds=seconds)
    else:  # free for a coordinator on a machine in the region; the plan cannot know
        usage += Usage(transfer_out_gb=decode.received / GB)
    kept = stored(pair.left), stored(pair.right)
    storage = sum(one.storage_bytes for one in kept) / GB
    return PairPlan(
        shape=pair.shape,
        inner=pair.inner,
        grid=pair.grid,
        data_grid=pair.data_grid,
        codes=(code.left.name, code.right.name),
        workers=pair.workers,
        data_blocks=pair.data_blocks,
        block_shape=task.result_shape,
        block_dtypes=(str(np.dtype(pair.left.dtype)), str(np.dtype(pair.right.dtype))),
        compute_dtype=str(task.result_dtype),
        left=kept[0],
        right=kept[1],
        bytes_read=pair.workers * task.bytes_read,
        answer_bytes=work.answer_bytes,
        worker_memory=pair_memory(task),
        worker_memory_mb=worker_memory_mb,
        worker_timeout=worker_timeout,
        arrivals_mean=float(counts.mean()),
        arrivals_p99=int(np.quantile(counts, 0.99, method="higher")),
        usage=usage,
        run_cost=cost(usage, prices),
        encode_cost=cost(kept[0].encode_usage + kept[1].encode_usage, prices),
        storage_month=cost(Usage(storage_gb_months=storage), prices),
        time=time,
        decode=decode,
        decode_lambda=other,
        notes=tuple(run_notes(pair.workers, time, delays, worker_timeout, platform)),
    )


def _usage(
    pair: MatrixPair,
    task: PairTask,
    time: ExpectedTime,
    delays: DelayModel,
    memory_mb: int,
    platform: Platform,
) -> Usage:
    """Workers to their end, and a coordinator: see `coordinator.run_plan`."""
    workers, rate = pair.workers, task_rate(task, pair.workers, platform)
    looks = planned_looks(np.array([time.task]), workers, platform, rate, delays)
    published = min(workers, int(time.coded / PUBLISH_INTERVAL))
    listings = math.ceil(time.coded / (4 * FASTEST)) * (1 + workers // LIST_PAGE)
    return Usage(
        puts=workers + 6 + 2 * published,
        gets=workers * task.tiles_read + workers + 2,
        lists=looks + listings,
        invokes=workers,
        worker_gb_seconds=workers * memory_mb / MB_PER_GB * (time.task + delays.mean),
    )
