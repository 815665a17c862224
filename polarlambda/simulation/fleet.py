"""One product by a fleet of simulated workers, the coordinator's own code on a virtual clock.

State machine, loop, performer, collector, journal, estimate, decoder and report are those that run
on AWS; S3, Lambda and the clock are simulated (`fleet_store`, `fleet_lambda`, `fleet_world`). The
answers are those of a random product: a code is linear, so coding the product gives what workers
would have computed from coded blocks, and the matrix itself is not needed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from blockstore import keys
from blockstore.bucket import Bucket
from coordinator.collect import fetch_threads
from coordinator.encoding_plan import plan_encoding
from coordinator.outcome import Outcome
from coordinator.platform import Platform
from coordinator.report import Billing
from coordinator.run import start_run
from coordinator.run_plan import block_work, planned_task
from coordinator.tree import TREE_FROM
from coordinator.window import OVERLAP
from polarcodes.delays import DelayModel, make_delays
from polarlambda.simulation.fleet_invoker import FleetInvoker
from polarlambda.simulation.fleet_lambda import Counts, FleetLambda, Work
from polarlambda.simulation.fleet_limits import FleetLimits
from polarlambda.simulation.fleet_store import FleetStore
from polarlambda.simulation.fleet_world import EPOCH, World, WorldClock

__all__ = ["Fleet", "FleetRun", "simulate"]


@dataclass(frozen=True)
class Fleet:
    """A matrix, a code and workers.

    shape, dtype, columns : of the matrix, and columns of x; workers, data_blocks : N and s
    delays : seconds beyond the undelayed task, drawn with `seed`; silent : how many workers die
    charge : processor seconds of the coordinator count as time (see `World`)
    overlap : times the concurrency that the coordinator hands to Lambda at a time; 0: everything
    tree_from : workers from which on dispatch functions invoke them
    paced : those are asked at the rate of S3's prefixes, or all at once
    trusting : workers begin without a look for the stop marker right after they were sent
    """

    shape: tuple[int, int]
    workers: int
    data_blocks: int
    dtype: str = "uint8"
    columns: int = 1
    code: str = "auto"
    delays: DelayModel = field(default_factory=lambda: make_delays("lambda-rare-tail"))
    limits: FleetLimits = field(default_factory=lambda: FleetLimits(Platform()))
    memory_mb: int = 1_769
    timeout: float = 300.0
    silent: int = 0
    seed: int = 0
    charge: float = 0.0
    until: str = "exact"
    overlap: float = OVERLAP
    tree_from: int = TREE_FROM
    paced: bool = True
    trusting: bool = True

    def lift(self, name: str) -> Fleet:
        """The same fleet without a limit (`fleet_limits.LIMITS`), "stragglers", or the
        "coordinator's processor"."""
        if name == "stragglers":
            return replace(self, delays=make_delays("none"))
        if name == "coordinator's processor":
            return replace(self, charge=0.0)
        return replace(self, limits=self.limits.lift(name))


@dataclass(frozen=True)
class FleetRun:
    """What became of it. `error`: of the value, relative, in the Frobenius norm; `requests` and
    `slow_downs`: S3's, of workers and coordinator; `invokes`: requests the client made."""

    outcome: Outcome
    error: float
    requests: dict[str, int]
    slow_downs: dict[str, int]
    invokes: int
    counts: Counts
    computed: float

    @property
    def seconds(self) -> float:
        """From the start of the run to its result."""
        return self.outcome.seconds

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        counts = {k: v for k, v in vars(self.counts).items() if k != "begins"}
        begins = sorted(self.counts.begins)
        return {
            "seconds": self.seconds,
            "state": self.outcome.state,
            "arrivals": self.outcome.arrivals,
            "error": self.error,
            "dollars": (self.outcome.cost or {}).get("total"),
            "phases": self.outcome.phases,
            "last_begin": begins[-1] - EPOCH if begins else None,
            "requests": self.requests,
            "slow_downs": self.slow_downs,
            "invokes": self.invokes,
            "computed": self.computed,
            **counts,
        }


def simulate(fleet: Fleet) -> FleetRun:
    """Run it once. Cost: some seconds of this machine for thousands of workers."""
    limits, rng = fleet.limits, np.random.default_rng(fleet.seed)
    plan = plan_encoding(
        fleet.shape,
        fleet.dtype,
        workers=fleet.workers,
        data_blocks=fleet.data_blocks,
        code=fleet.code,
        seed=fleet.seed,
        memory=4 << 30,
        platform=limits.platform,
    )
    manifest, code = plan.manifest, plan.choice.make(fleet.seed)
    x = rng.standard_normal((fleet.shape[1], fleet.columns))
    task = planned_task(manifest, x.shape, x.dtype)
    rows = manifest.data_blocks * manifest.block_rows
    product = rng.standard_normal((rows, fleet.columns))
    product[fleet.shape[0] :] = 0
    answers = code.encode(product.reshape(manifest.data_blocks, -1))
    answers = answers.astype(task.result_dtype).reshape(-1, *task.result_shape)
    silent = rng.choice(fleet.workers, fleet.silent, replace=False)
    work = Work(
        block=block_work(task),
        answers=answers,
        delays=fleet.delays.sample(rng, 1, fleet.workers)[0],
        memory_mb=fleet.memory_mb,
        timeout=fleet.timeout,
        scale=float(np.sqrt(np.mean(answers**2)) * np.sqrt(fleet.columns)),
        silent=frozenset(int(worker) for worker in silent),
        trusting=fleet.trusting,
    )
    world = World(fleet.charge)
    threads = limits.threads or fetch_threads(fleet.workers)
    store = FleetStore(world, limits, threads, fleet.seed)
    function = FleetLambda(world, limits, store, work, fleet.seed)
    invoker = FleetInvoker(world, limits, function, fleet.tree_from, fleet.paced)
    outcome = start_run(
        Bucket(store, "simulated"),
        manifest,
        x,
        until=fleet.until,
        invoker=invoker,
        run=keys.new_run_id(int(EPOCH * 1000), fleet.seed.to_bytes(10, "big")),
        clock=WorldClock(world),
        billing=Billing(
            worker_memory_mb=fleet.memory_mb,
            worker_timeout=fleet.timeout,
            concurrency=round(fleet.overlap / OVERLAP * limits.platform.concurrency),
        ),
        threads=1,
    )
    wanted = product[: fleet.shape[0]]
    value = outcome.value if outcome.value is not None else np.zeros_like(wanted)
    return FleetRun(
        outcome=outcome,
        error=float(np.linalg.norm(value - wanted) / np.linalg.norm(wanted)),
        requests=dict(store.requests),
        slow_downs=dict(store.slow_downs),
        invokes=invoker.requests,
        counts=function.counts,
        computed=world.computed,
    )
