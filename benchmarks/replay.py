"""Task times for the simulations: measured profiles of a folder, or the delay models we ship.

A task is what one of N workers does without coding. Times are (rounds, N) seconds of whole tasks;
what a worker needs for a part of one depends on why it is slow:

- `throughout`: a part w of the task takes w times the worker's whole time;
- `stall`: its excess over the fastest of the round comes first, then it works at full speed.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from polarcodes.delays import make_delays

WORKERS = 256
TASK_SECONDS = 1.5  # of the shipped models, which describe delays only
STRAGGLERS = ("throughout", "stall")

Times = NDArray[np.float64]


def add_options(parser: argparse.ArgumentParser) -> None:
    """--data FOLDER and --small."""
    parser.add_argument(
        "--data",
        type=Path,
        default=os.environ.get("POLARLAMBDA_DELAYS"),
        help="folder of measured profiles, one CSV each, rounds x workers (POLARLAMBDA_DELAYS)",
    )
    parser.add_argument("--small", action="store_true", help="a few seconds: does it still run?")


def measured(folder: Path | str | None) -> dict[str, Times]:
    """Profiles of several rounds with 256 workers, by name; empty when there is no such folder."""
    if folder is None or not Path(folder).is_dir():
        return {}
    tables = {
        path.stem: np.loadtxt(path, delimiter=",", ndmin=2)
        for path in sorted(Path(folder).glob("*.csv"))
    }
    return {name: table for name, table in tables.items() if table.shape[1] == WORKERS}


def why_skipped(folder: Path | str | None) -> str:
    """The reason why nothing measured is replayed."""
    if folder is None:
        return "measured delays skipped: give --data FOLDER or POLARLAMBDA_DELAYS"
    return f"measured delays skipped: no CSV of {WORKERS} columns in {folder}"


def modelled(rounds: int, workers: int = WORKERS) -> dict[str, Times]:
    """The shipped delay models on a task of 1.5 s; exponential with a mean of a tenth of it."""
    models = (make_delays("lambda-rare-tail"), make_delays("exponential", mean=TASK_SECONDS / 10))
    return {
        f"model {model.name}": TASK_SECONDS
        + model.sample(np.random.default_rng(0), rounds, workers)
        for model in models
    }


def part_of_task(times: Times, part: float, straggler: str) -> Times:
    """Seconds until a worker has done this part of a task (it may exceed 1), shape as times."""
    if straggler == "throughout":
        return times * part
    fastest = times.min(axis=1, keepdims=True)
    return times - fastest + part * fastest
