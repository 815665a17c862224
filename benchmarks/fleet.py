"""A product at thousands of workers, simulated: time, requests, dollars, and what the time goes to.

The coordinator's code is the one that runs on AWS, on a virtual clock; its processor time is that
of this machine. S3, Lambda and their limits are simulated (docs/scale.md). The bottleneck is the
limit without which the product would take the least: each is lifted in turn.

    python -m benchmarks.fleet [--small] [--data FOLDER]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import WrongResult, save
from coordinator.platform import Platform
from polarcodes.delays import DelayModel, from_table, make_delays
from polarlambda.simulation.fleet import Fleet, FleetRun, simulate
from polarlambda.simulation.fleet_limits import LIMITS, FleetLimits

IMAGENET_64, IMAGENET_224 = (1_281_167, 12_288), (1_281_167, 150_528)
REDUNDANCY = 1 / 16
NO_TREE = 1 << 30
# The coordinator before the simulation showed its walls: 16 GETs at a time, pages whose dates
# botocore parses, invocations from one client, everything left to Lambda's queue.
BEFORE = {"threads": 16, "list_page_cpu": 0.072}


@dataclass(frozen=True)
class Case:
    """A row of the table."""

    name: str
    fleet: Fleet
    explain: bool = False  # lift the limits one by one


def fleet(
    workers: int,
    delays: DelayModel,
    *,
    shape: tuple[int, int] = IMAGENET_64,
    concurrency: int = 0,
    warm: bool = True,
    **options: Any,
) -> Fleet:
    """The default code with 1/16 redundancy on that many workers."""
    platform = Platform(
        concurrency=concurrency or max(1_000, workers), warm_environments=workers if warm else 0
    )
    data_blocks = workers - round(REDUNDANCY * workers)
    limits = FleetLimits(platform)
    return Fleet(shape, workers, data_blocks, delays=delays, limits=limits, charge=1.0, **options)


def cases(small: bool, delays: DelayModel) -> Iterator[Case]:
    """Sizes with warm environments; as it was before; cold ones; too little concurrency."""
    sizes = (128,) if small else (1_024, 4_096, 16_384)
    for n in sizes:
        after = fleet(n, delays)
        limits = replace(after.limits, **BEFORE)
        before = replace(after, limits=limits, tree_from=NO_TREE, window=False)
        yield Case(f"N = {n:,}, warm, one client, 16 GETs", before)
        yield Case(f"N = {n:,}, warm", after, explain=True)
        if n < 10_000:
            yield Case(f"N = {n:,}, warm, no tree", replace(after, tree_from=NO_TREE))
        yield Case(f"N = {n:,}, cold", fleet(n, delays, warm=False), explain=n < 10_000)
    n, few = (128, 32) if small else (4_096, 1_000)
    for shape, name in ((IMAGENET_64, "short tasks"), (IMAGENET_224, "long tasks")):
        crowded = fleet(n, delays, shape=shape, concurrency=few, warm=False)
        label = f"N = {n:,}, concurrency {few:,}, {name}"
        yield Case(label, crowded, explain=shape is IMAGENET_64)
        yield Case(f"{label}, Lambda's queue alone", replace(crowded, window=False))


def savings(base: Fleet, took: FleetRun) -> dict[str, float]:
    """Seconds that the product would take less without each limit."""
    saved = {}
    for name in (*LIMITS, "stragglers", "coordinator's processor"):
        if name == "concurrency" and base.workers <= base.limits.platform.concurrency:
            continue
        saved[name] = took.seconds - simulate(base.lift(name)).seconds
    return saved


def measure(case: Case) -> dict[str, Any]:
    """Run a case; raises WrongResult if the product is not exact."""
    began = time.perf_counter()
    took = simulate(case.fleet)
    if took.outcome.state != "exact" or not took.error < 1e-6:
        raise WrongResult(f"{case.name}: {took.outcome.state}, error {took.error:.1e}")
    row = {"case": case.name, **took.to_json(), "wall": time.perf_counter() - began}
    if case.explain:
        row["saved_without"] = savings(case.fleet, took)
        row["bottleneck"] = max(row["saved_without"], key=row["saved_without"].__getitem__)
    return row


def show(row: dict[str, Any]) -> str:
    """A line of the table."""
    requests = sum(row["requests"].values())
    line = (
        f"{row['case']:<58} {row['seconds']:>7.1f} {row['last_begin']:>7.1f} {requests:>8,} "
        f"{sum(row['slow_downs'].values()):>7,} {row['invokes']:>7,} {row['dollars']:>8.4f}"
    )
    if "bottleneck" in row:
        saved = sorted(row["saved_without"].items(), key=lambda item: -item[1])
        line += "  " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in saved[:3])
    return line


def measured(folder: Path) -> DelayModel:
    """The delays of a folder of tables (rounds, workers), one after the other."""
    paths = sorted(folder.glob("short-*.csv"))
    if not paths:
        raise SystemExit(f"{folder} has no short-*.csv")
    tables = [np.loadtxt(path, delimiter=",", ndmin=2) for path in paths]
    width = min(table.shape[1] for table in tables)
    return from_table(np.vstack([table[:, :width] for table in tables]), f"{len(paths)} tables")


def main() -> int:
    """Print the table, write benchmarks/results/fleet.json; 1 if a product is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--small", action="store_true", help="128 workers: does it still run?")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="measured delays to replay")
    options = parser.parse_args()
    delays = measured(options.data) if options.data else make_delays("lambda-rare-tail")
    print(f"delays: {delays.describe()}")
    print(
        f"{'':<58} {'seconds':>7} {'begun':>7} {'S3':>8} {'503':>7} {'invokes':>7} {'$':>8}"
        "  seconds less without"
    )
    rows = []
    try:
        for case in cases(options.small, delays):
            rows.append(measure(case))
            print(show(rows[-1]), flush=True)
    except WrongResult as error:
        print(f"WRONG RESULT: {error}")
        return 1
    path = save("fleet", {"small": options.small, "delays": delays.name, "rows": rows})
    print(f"written to {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
