"""Arrivals needed, and the float32 error at the threshold, for every code with a transform.

Each row: codes with fresh random parts, each with a random order of arrivals, up to the first set
whose predicted error is at most 1e-3 (the default tolerance). Blocks are float32, decoding float64.
Draws depend on N, s and the trial alone: rows are the same in any order and number of processes.

`--every-size`: the rotated code at every N of 8 to 128 instead.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.harness import save
from polarcodes import make_code

VARIANTS = {
    "polar": ("polar", {}),
    "hadamard 1 round": ("hadamard", {"rounds": 1}),
    "hadamard 2 rounds": ("hadamard", {"rotated": False}),
    "hadamard rotated": ("hadamard", {}),
}
REDUNDANCIES = (1 / 16, 1 / 8, 1 / 4, 1 / 2)
COLUMNS = 8
TRIALS = 1_000
SIZES = (8, 16, 32, 64, 128, 256, 512, 1024)

Case = tuple[str, int, int, int]


@dataclass(frozen=True)
class Threshold:
    """Arrivals over s, and relative errors of the decoded product, of one code and size."""

    code: str
    workers: int
    data_blocks: int
    trials: int
    exactly_s: int
    mean: float
    p99: float
    most: int
    error_median: float
    error_p99: float
    error_worst: float
    within_1e_4: int
    predicted_worst: float


def measure(case: Case) -> Threshold:
    """Find the thresholds of (variant, N, s, trials) and decode float32 blocks at each."""
    variant, workers, blocks, trials = case
    draws = [trial(variant, workers, blocks, seed) for seed in range(trials)]
    return summary(variant, workers, blocks, draws)


def trial(variant: str, workers: int, blocks: int, seed: int) -> tuple[int, float, float]:
    """(arrivals over s, relative error, predicted error) of one code and one order."""
    name, options = VARIANTS[variant]
    rng = np.random.default_rng((workers, blocks, seed))
    code = make_code(name, workers=workers, data_blocks=blocks, seed=seed, **options)
    order = rng.permutation(workers)
    state = code.arrivals()
    state.update(order[: blocks - 1])
    for worker in order[blocks - 1 :].tolist():
        state.add(worker)
        if state.decodable:
            break
    S = order[: len(state)]
    U = rng.standard_normal((blocks, COLUMNS), dtype=np.float32)
    plan = code.plan(S)
    X = plan.apply(code.encode(U)[S].astype(np.float64))
    error = float(np.linalg.norm(X - U) / np.linalg.norm(U))
    return len(state) - blocks, error, plan.predicted_error()


def summary(
    variant: str, workers: int, blocks: int, draws: Sequence[tuple[int, float, float]]
) -> Threshold:
    """One row of the table."""
    counts = np.array([extra for extra, _, _ in draws])
    errors = np.array([error for _, error, _ in draws])
    return Threshold(
        variant,
        workers,
        blocks,
        len(draws),
        exactly_s=int(np.sum(counts == 0)),
        mean=float(counts.mean()),
        p99=float(np.quantile(counts, 0.99)),
        most=int(counts.max()),
        error_median=float(np.median(errors)),
        error_p99=float(np.quantile(errors, 0.99)),
        error_worst=float(errors.max()),
        within_1e_4=int(np.sum(errors <= 1e-4)),
        predicted_worst=max(predicted for _, _, predicted in draws),
    )


def cases(small: bool, trials: int = TRIALS) -> list[Case]:
    """(variant, N, s, trials) of the table."""
    sizes = {16: 20, 64: 10} if small else dict.fromkeys(SIZES, trials)
    return [
        (variant, workers, round(workers * (1 - redundancy)), trials)
        for workers, trials in sizes.items()
        for redundancy in REDUNDANCIES
        if workers * redundancy >= 1
        for variant in VARIANTS
    ]


def every_size(small: bool, trials: int = TRIALS) -> list[Case]:
    """The rotated code at every N of 8 to 128 (small: 8 to 12), at every redundancy."""
    return [
        ("hadamard rotated", workers, round(workers * (1 - redundancy)), 5 if small else trials)
        for workers in range(8, 13 if small else 129)
        for redundancy in REDUNDANCIES
        if workers * redundancy >= 1
    ]


def line(row: Threshold) -> str:
    """One row of the table."""
    return (
        f"{row.code:18s} {row.workers:5d} {row.data_blocks:5d} {row.exactly_s:5d}/{row.trials:<5d}"
        f"{row.mean:7.2f} {row.p99:6.1f} {row.most:5d}   {row.error_median:8.1e} "
        f"{row.error_p99:8.1e} {row.error_worst:8.1e} {row.within_1e_4:6d}"
    )


def main() -> int:
    """Print the table row by row and save it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.thresholds", description=__doc__)
    parser.add_argument("--small", action="store_true", help="a few seconds: does it still run?")
    parser.add_argument("--every-size", action="store_true", help="every N of 8 to 128, rotated")
    parser.add_argument("--processes", type=int, default=1, help="rows measured side by side")
    parser.add_argument("--trials", type=int, default=TRIALS, help="codes and orders of a row")
    arguments = parser.parse_args()
    choose = every_size if arguments.every_size else cases
    chosen = choose(arguments.small, arguments.trials)
    print(
        f"{'code':18s} {'N':>5s} {'s':>5s} {'exactly s':>11s} {'mean':>6s} {'p99':>6s} {'max':>5s}"
        f"   {'error':>8s} {'p99':>8s} {'worst':>8s} {'<=1e-4':>6s}"
    )
    rows = []
    with ProcessPoolExecutor(arguments.processes) as pool:
        for row in pool.map(measure, chosen):
            rows.append(row)
            print(line(row), flush=True)
    trials, ideal = sum(row.trials for row in rows), sum(row.exactly_s for row in rows)
    within = sum(row.within_1e_4 for row in rows)
    name = "thresholds_every_size" if arguments.every_size else "thresholds"
    path = save(name, json.loads(json.dumps({"rows": [asdict(row) for row in rows]})))
    print(f"{ideal} of {trials} exactly s, {within} with error <= 1e-4; written to {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
