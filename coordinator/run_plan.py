"""What one product will need, cost and take, before anything is written or invoked."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from blockstore.arrays import check_dtype
from blockstore.errors import ArrayRefused
from blockstore.manifest import Manifest
from blockstore.memory import worker_memory
from blockstore.tasks import WorkerTask
from coordinator.cost import Cost, Usage, cost
from coordinator.decode_plan import plan_decodings
from coordinator.decode_wish import DecodePlan, DecodeWish
from coordinator.expected_time import SEED, ExpectedTime, affordable, expected_time
from coordinator.fits import check_coordinator, check_fits, event_bytes
from coordinator.form import AnswerForm
from coordinator.platform import Platform
from coordinator.prices import Prices, load_prices
from coordinator.refusals import PlanRefused
from coordinator.run_usage import MB_PER_GB, coordinator_usage, worker_usage
from coordinator.storage import Stored, stored
from coordinator.task_time import BlockWork
from coordinator.waiting import decisive_counts
from polarcodes import code_from_manifest
from polarcodes.delays import DelayModel, make_delays

ROUNDS = 1_000
QUICK_ROUNDS = 64
GB = 1 << 30
_OBJECTS = frozenset(("stored", "usage", "run_cost", "encode_cost", "storage_month", "time"))
_OBJECTS |= {"decode", "decode_lambda"}
PLANNED_RUN = "0" * 26
PLANNED_DIGEST = "sha256:" + "0" * 64


@dataclass(frozen=True)
class RunPlan:
    """Every figure of a planned product. Sizes in bytes (memory settings in MB), times in seconds,
    cost in dollars.

    `subtasks`: blocks of each worker, whose answers it sends one by one (`data_blocks` and
    `arrivals` count them all). `arrivals_mean`, `arrivals_p99`: answers that decode when they come
    in random order.
    `worker_memory`: predicted peak of a worker. `decode`: how the product is put together, which is
    in `usage` and `time`; `decode_lambda`: the same by decode functions, of a large one.
    `run_cost`: one product; `encode_cost` (once) and `storage_month` are those of the matrix.
    """

    matrix: str
    shape: tuple[int, int]
    x_shape: tuple[int, ...]
    code: str
    workers: int
    subtasks: int
    data_blocks: int
    block_rows: int
    block_dtype: str
    compute_dtype: str
    tile_rows: int
    tile_columns: int
    stored: Stored
    worker_memory: int
    worker_memory_mb: int
    worker_timeout: float
    event_bytes: int
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
    concurrency: int = Platform.concurrency

    @property
    def waves(self) -> int:
        """How often a worker that had to wait begins, at most: ceil(N / concurrency)."""
        return -(-self.workers // self.concurrency)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON of every figure; no NaN."""
        figures: dict[str, Any] = {
            name: getattr(self, name) for name in self.__dataclass_fields__ if name not in _OBJECTS
        }
        figures |= {
            "shape": list(self.shape),
            "x_shape": list(self.x_shape),
            "notes": list(self.notes),
            **asdict(self.stored),
            "usage": self.usage.to_json(),
            "run_cost": self.run_cost.to_json(),
            "encode_cost": self.encode_cost.to_json(),
            "storage_month": self.storage_month.to_json(),
            "expected_time": {**asdict(self.time), "pays": self.time.pays},
            "decode": self.decode.to_json(),
            "decode_lambda": self.decode_lambda.to_json() if self.decode_lambda else None,
            "waves": self.waves,
        }
        return figures


def plan_multiply(
    manifest: Manifest,
    x_shape: tuple[int, ...],
    x_dtype: np.dtype[Any] | str = "float64",
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
) -> RunPlan:
    """Plan `A @ x` on an encoded matrix. Reads nothing, writes nothing, invokes nothing.

    Parameters: `x_shape` (d,) or (d, k); `worker_memory_mb` and `worker_timeout` (seconds) of the
    deployed worker function; `on` "lambda" bills a coordinator function of `coordinator_memory_mb`;
    `wish`: how the product is put together (there, the memory is that of the function).
    Default delays: `lambda-rare-tail`. Raises PlanRefused for a wrong x, or for what cannot fit,
    naming the number to change. `rounds` are simulated for times and arrivals: a product that is
    about to begin can do with `QUICK_ROUNDS`. Cost: see docs/cost.md.
    """
    platform = platform or Platform()
    prices = prices or load_prices()
    delays = delays if delays is not None else make_delays("lambda-rare-tail")
    task = planned_task(manifest, x_shape, x_dtype)
    work = block_work(task)
    check_fits(task, all_blocks(work, task.subtasks), worker_memory_mb, worker_timeout, platform)
    form = AnswerForm.of(manifest, task.x_shape, task.x_dtype)
    if on == "lambda":
        check_coordinator(form, work.x_bytes, work.k, coordinator_memory_mb, platform)
    code = code_from_manifest(manifest.code)
    orders = affordable(rounds, manifest.blocks)
    arrivals = decisive_counts(
        code, np.random.default_rng(SEED), orders, quick=rounds <= QUICK_ROUNDS
    )
    time = expected_time(
        code,
        work,
        np.dtype(manifest.source_dtype),
        worker_memory_mb,
        delays,
        platform,
        rounds,
        arrivals,
        manifest.subtasks,
    )
    decode, other = plan_decodings(
        form,
        code,
        math.ceil(arrivals.mean()),
        work.x_bytes,
        wish or DecodeWish(),
        prices,
        platform,
        coordinator_mb=coordinator_memory_mb if on == "lambda" else 0,
        spread=max(0.0, time.coded - time.task - time.finish),
        compare=rounds > QUICK_ROUNDS,
    )
    time = time.later(decode.seconds - time.finish)
    usage = worker_usage(work, manifest.shares, time, delays, worker_memory_mb, platform)
    usage += coordinator_usage(manifest.shares, time) + decode.usage
    if on == "lambda":
        seconds = time.coded * coordinator_memory_mb / MB_PER_GB
        usage += Usage(invokes=1, coordinator_gb_seconds=seconds)
    else:  # free for a coordinator on a machine in the region; the plan cannot know
        usage += Usage(transfer_out_gb=decode.received / GB)
    kept = stored(manifest)
    return RunPlan(
        matrix=manifest.name,
        shape=manifest.shape,
        x_shape=task.x_shape,
        code=code.name,
        workers=manifest.workers,
        subtasks=manifest.shares.per_worker,
        data_blocks=manifest.data_blocks,
        block_rows=manifest.block_rows,
        block_dtype=str(np.dtype(manifest.dtype)),
        compute_dtype=str(task.result_dtype),
        tile_rows=manifest.tiling.tile_rows,
        tile_columns=manifest.tiling.tile_columns,
        stored=kept,
        worker_memory=worker_memory(task),
        worker_memory_mb=worker_memory_mb,
        worker_timeout=worker_timeout,
        event_bytes=event_bytes(task),
        arrivals_mean=float(arrivals.mean()),
        arrivals_p99=int(np.quantile(arrivals, 0.99, method="higher")),
        usage=usage,
        run_cost=cost(usage, prices),
        encode_cost=cost(kept.encode_usage, prices),
        storage_month=kept.month(prices),
        time=time,
        decode=decode,
        decode_lambda=other,
        notes=tuple(run_notes(manifest.workers, time, delays, worker_timeout, platform)),
        concurrency=platform.concurrency,
    )


def planned_task(
    manifest: Manifest, x_shape: tuple[int, ...], x_dtype: np.dtype[Any] | str
) -> WorkerTask:
    """The task of a worker in a run with this x, its run and digest being placeholders.

    Raises PlanRefused when x does not fit the matrix.
    """
    shape = tuple(int(size) for size in x_shape)
    if len(shape) not in (1, 2) or shape[0] != manifest.columns or min(shape) < 1:
        raise PlanRefused(
            "x",
            shape,
            (manifest.columns, *shape[1:2]),
            f"its shape must be ({manifest.columns},) or ({manifest.columns}, k), k >= 1, for a "
            f"matrix of shape {manifest.shape}",
        )
    try:
        dtype = check_dtype(np.dtype(x_dtype))
    except (ArrayRefused, TypeError) as error:
        raise PlanRefused("x", str(x_dtype), None, str(error)) from error
    return WorkerTask.of(
        manifest,
        run=PLANNED_RUN,
        attempt=0,
        worker=manifest.workers - 1,
        x_shape=shape,
        x_dtype=dtype.newbyteorder("<").str,
        x_digest=PLANNED_DIGEST,
    )


def block_work(task: WorkerTask) -> BlockWork:
    """The work of one worker for the time model."""
    return BlockWork(
        rows=task.block_rows,
        columns=task.columns,
        itemsize=np.dtype(task.dtype).itemsize,
        objects=task.tiling.count,
        k=math.prod(task.x_shape[1:]),
        compute_itemsize=task.result_dtype.itemsize,
    )


def all_blocks(work: BlockWork, subtasks: int) -> BlockWork:
    """The work of all blocks of a worker, as if they were one."""
    return replace(work, rows=work.rows * subtasks, objects=work.objects * subtasks)


def run_notes(
    workers: int, time: ExpectedTime, delays: DelayModel, timeout: float, platform: Platform
) -> Iterator[str]:
    """What a person should know of a plan, in sentences: whether coding pays, and what is tight."""
    yield time.verdict
    if workers > platform.concurrency:
        waves = -(-workers // platform.concurrency)
        yield (
            f"workers = {workers} is more than the concurrency of {platform.concurrency:,}: blocks "
            f"queue in {waves} waves, which the expected time counts. Ask AWS for more, or take "
            "fewer workers."
        )
    cold = min(workers, platform.concurrency) - platform.warm_environments
    if cold > platform.ramp_burst:
        seconds = (cold - platform.ramp_burst) / platform.ramp_rate
        yield (
            f"Lambda starts {platform.ramp_burst:,} environments at once and "
            f"{platform.ramp_rate:g} a second then: the last of {cold:,} begins after "
            f"{seconds:.0f} s unless an earlier product left it warm."
        )
    late = delays.quantile(0.999) + time.task
    if late > timeout:
        yield (
            f"One worker in 1,000 needs {late:.0f} s or more: with worker_timeout = {timeout:g} s "
            "it counts as lost."
        )
