"""A product at thousands of workers, simulated: time, requests, dollars, and what the time goes to.

The coordinator's code is the one that runs on AWS, on a virtual clock; its processor time is that
of this machine. S3, Lambda and their limits are simulated (docs/scale.md). The bottleneck is the
limit without which the product would take the least: each is lifted in turn. Figures are means over
seeds of the code, the delays and S3's and Lambda's chances; limits are lifted with the first one.

    python -m benchmarks.fleet [--small] [--seeds 3] [--data FOLDER]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
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
# botocore parses, invocations from one client, everything left to Lambda's queue, and every worker
# looks for the stop marker before it starts.
BEFORE = {"threads": 16, "list_page_cpu": 0.072}
AT_ONCE = {"paced": False, "trusting": False}  # the tree before it showed the last one


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
    """Sizes with warm environments; as it was before; cold ones; large blocks; too little
    concurrency."""
    sizes = (128,) if small else (1_024, 4_096, 16_384)
    for n in sizes:
        after = fleet(n, delays, tree_from=64) if small else fleet(n, delays)
        limits = replace(after.limits, **BEFORE)
        options = {"tree_from": NO_TREE, "overlap": 0.0, "trusting": False}
        yield Case(
            f"N = {n:,}, warm, one client, 16 GETs", replace(after, limits=limits, **options)
        )
        tree = n >= after.tree_from
        if tree:
            yield Case(f"N = {n:,}, warm, tree at once, all look", replace(after, **AT_ONCE))
        yield Case(f"N = {n:,}, warm", after, explain=True)
        if tree and n < 10_000:
            yield Case(f"N = {n:,}, warm, no tree", replace(after, tree_from=NO_TREE))
        yield Case(f"N = {n:,}, cold", fleet(n, delays, warm=False), explain=n < 10_000)
    n, few = (128, 32) if small else (4_096, 1_000)
    large = fleet(n, delays, shape=IMAGENET_224, tree_from=min(n, 2_048))
    yield Case(f"N = {n:,}, warm, 224, tree at once, all look", replace(large, **AT_ONCE))
    yield Case(f"N = {n:,}, warm, 224", large, explain=True)
    crowded = fleet(n, delays, concurrency=few, warm=False)
    label = f"N = {n:,}, concurrency {few:,}"
    yield Case(label, crowded, explain=True)
    yield Case(f"{label}, Lambda's queue alone", replace(crowded, overlap=0.0))


def windows(small: bool, delays: DelayModel) -> Iterator[tuple[str, Fleet]]:
    """Fleets on too little concurrency, without the coordinator's processor time."""
    if small:
        yield "64 workers on 16", replace(fleet(64, delays, concurrency=16), charge=0.0)
        return
    for shape, name in ((IMAGENET_224, "ImageNet at 224"), (IMAGENET_64, "ImageNet-64")):
        crowded = fleet(4_096, delays, shape=shape, concurrency=1_000, warm=False)
        yield f"{name}, 4,096 workers on 1,000", replace(crowded, charge=0.0)
    crowded = fleet(1_024, delays, shape=IMAGENET_224, concurrency=100, warm=False)
    yield "ImageNet at 224, 1,024 workers on 100", replace(crowded, charge=0.0)


def savings(base: Fleet, took: FleetRun) -> dict[str, float]:
    """Seconds that the product would take less without each limit."""
    saved = {}
    for name in (*LIMITS, "stragglers", "coordinator's processor"):
        if name == "concurrency" and base.workers <= base.limits.platform.concurrency:
            continue
        saved[name] = took.seconds - simulate(base.lift(name)).seconds
    return saved


def run(name: str, one: Fleet) -> FleetRun:
    """Simulate; raises WrongResult if the product is not exact."""
    took = simulate(one)
    if took.outcome.state != "exact" or not took.error < 1e-6:
        raise WrongResult(f"{name}: {took.outcome.state}, error {took.error:.1e}")
    return took


def measure(case: Case, seeds: int) -> dict[str, Any]:
    """Run a case with every seed: the first one's figures, and means."""
    began = time.perf_counter()
    took = [run(case.name, replace(case.fleet, seed=seed)) for seed in range(seeds)]
    told = [each.to_json() for each in took]
    row = {
        "case": case.name,
        **told[0],
        "wall": (time.perf_counter() - began) / seeds,
        "seeds": [{key: one[key] for key in ("seconds", "dollars")} for one in told],
        "mean": {key: fmean(one[key] for one in told) for key in ("seconds", "dollars")}
        | {
            "last_begin": fmean(one["last_begin"] for one in told),
            "requests": fmean(sum(one["requests"].values()) for one in told),
            "slow_downs": fmean(sum(one["slow_downs"].values()) for one in told),
        },
    }
    if case.explain:
        row["saved_without"] = savings(case.fleet, took[0])
        row["bottleneck"] = max(row["saved_without"], key=row["saved_without"].__getitem__)
    return row


def show(row: dict[str, Any]) -> str:
    """A line of the table."""
    mean, times = row["mean"], [one["seconds"] for one in row["seeds"]]
    line = (
        f"{row['case']:<46} {mean['seconds']:>6.1f} {min(times):>6.1f} {max(times):>6.1f} "
        f"{mean['last_begin']:>6.1f} {mean['requests']:>8,.0f} {mean['slow_downs']:>7,.0f} "
        f"{row['failed']:>6,} {row['invokes']:>7,} {mean['dollars']:>8.4f}"
    )
    if "bottleneck" in row:
        saved = sorted(row["saved_without"].items(), key=lambda item: -item[1])
        line += "  " + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in saved[:3])
    return line


def compare_windows(small: bool, delays: DelayModel, seeds: int) -> list[dict[str, Any]]:
    """Mean seconds by how many times the concurrency is handed to Lambda; prints a line each."""
    overlaps = (1.5, 0.0) if small else (1.0, 1.25, 1.5, 2.0, 0.0)
    print("\nhanded to Lambda, times the concurrency: " + ", ".join(map(str, overlaps)) + " (all)")
    rows = []
    for name, crowded in windows(small, delays):
        seconds = {
            overlap: fmean(
                run(name, replace(crowded, overlap=overlap, seed=seed)).seconds
                for seed in range(seeds)
            )
            for overlap in overlaps
        }
        rows.append({"fleet": name, "seconds": seconds})
        print(f"{name:<46} " + " ".join(f"{value:>6.1f}" for value in seconds.values()), flush=True)
    return rows


def measured(folder: Path) -> DelayModel:
    """The delays of a folder of tables (rounds, workers), one after the other."""
    paths = sorted(folder.glob("short-*.csv"))
    if not paths:
        raise SystemExit(f"{folder} has no short-*.csv")
    tables = [np.loadtxt(path, delimiter=",", ndmin=2) for path in paths]
    width = min(table.shape[1] for table in tables)
    return from_table(np.vstack([table[:, :width] for table in tables]), f"{len(paths)} tables")


def main() -> int:
    """Print the tables, write benchmarks/results/fleet.json; 1 if a product is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--small", action="store_true", help="128 workers: does it still run?")
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="measured delays to replay")
    parser.add_argument(
        "--seeds", type=int, default=0, metavar="COUNT", help="3, or 1 with --small"
    )
    options = parser.parse_args()
    seeds = options.seeds or (1 if options.small else 3)
    delays = measured(options.data) if options.data else make_delays("lambda-rare-tail")
    print(f"delays: {delays.describe()}; {seeds} seeds")
    print(
        f"{'':<46} {'mean s':>6} {'least':>6} {'most':>6} {'begun':>6} {'S3':>8} {'503':>7} "
        f"{'failed':>6} {'invokes':>7} {'$':>8}  seconds less without"
    )
    rows = []
    try:
        for case in cases(options.small, delays):
            rows.append(measure(case, seeds))
            print(show(rows[-1]), flush=True)
        windowed = compare_windows(options.small, delays, seeds)
    except WrongResult as error:
        print(f"WRONG RESULT: {error}")
        return 1
    results = {"delays": delays.name, "seeds": seeds, "rows": rows, "windows": windowed}
    print(f"written to {save('fleet', {'small': options.small} | results)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
