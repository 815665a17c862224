"""Arrivals needed, and the float32 error at the threshold, for every code with a transform.

Each row: codes with fresh random parts, each with a random order of arrivals, up to the first set
whose predicted error is at most 1e-3 (the default tolerance). Blocks are float32, decoding float64.
"""

from __future__ import annotations

import argparse
import json
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


def measure(variant: str, workers: int, blocks: int, trials: int) -> Threshold:
    """Find the thresholds of ``trials`` codes and decode float32 blocks at each."""
    name, options = VARIANTS[variant]
    rng = np.random.default_rng(workers * 1_000 + blocks)
    extra, errors, predicted = [], [], []
    for seed in range(trials):
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
        extra.append(len(state) - blocks)
        errors.append(float(np.linalg.norm(X - U) / np.linalg.norm(U)))
        predicted.append(plan.predicted_error())
    counts = np.array(extra)
    return Threshold(
        variant,
        workers,
        blocks,
        trials,
        exactly_s=int(np.sum(counts == 0)),
        mean=float(counts.mean()),
        p99=float(np.quantile(counts, 0.99)),
        most=int(counts.max()),
        error_median=float(np.median(errors)),
        error_p99=float(np.quantile(errors, 0.99)),
        error_worst=max(errors),
        within_1e_4=int(np.sum(np.array(errors) <= 1e-4)),
        predicted_worst=max(predicted),
    )


def cases(small: bool) -> list[tuple[str, int, int, int]]:
    """(variant, N, s, trials): 1,000 up to N = 128, then fewer, the work grows with N^3."""
    sizes = {16: 20, 64: 10} if small else {8: 1000, 16: 1000, 32: 1000, 64: 1000, 128: 1000}
    if not small:
        sizes |= {256: 300, 512: 60, 1024: 12}
    return [
        (variant, workers, round(workers * (1 - redundancy)), trials)
        for workers, trials in sizes.items()
        for redundancy in REDUNDANCIES
        if workers * redundancy >= 1
        for variant in VARIANTS
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
    small = parser.parse_args().small
    print(
        f"{'code':18s} {'N':>5s} {'s':>5s} {'exactly s':>11s} {'mean':>6s} {'p99':>6s} {'max':>5s}"
        f"   {'error':>8s} {'p99':>8s} {'worst':>8s} {'<=1e-4':>6s}"
    )
    rows = []
    for case in cases(small):
        rows.append(measure(*case))
        print(line(rows[-1]), flush=True)
    path = save("thresholds", json.loads(json.dumps({"rows": [asdict(row) for row in rows]})))
    print(f"written to {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
