"""Relative error of the decoded product by pattern of missing workers, float32 and float64 blocks.

Half of what each code could at best do without is missing: chosen at random, as a burst of
neighbours, and by a search for the worst pattern (swaps of a missing worker and a present one that
raise the predicted error, from a random start; what does not decode is never kept). float32 blocks
are encoded in float32; answers are decoded in float64.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.codes import FAMILIES, Family
from benchmarks.harness import save
from polarcodes import ErasureCode, NotDecodable, make_code

COLUMNS = 16


@dataclass(frozen=True)
class Row:
    """Errors of one code; NaN-free: a pattern that never decodes is left out as None."""

    code: str
    workers: int
    data_blocks: int
    pattern: str
    missing: int
    float32: float | None
    float64: float | None


def predicted(code: ErasureCode, missing: np.ndarray) -> float | None:
    """The plan's own figure for this pattern; None when the others do not decode."""
    S = np.setdiff1d(np.arange(code.workers), missing)
    try:
        return code.plan(S).predicted_error()
    except NotDecodable:
        return None


def random_pattern(code: ErasureCode, count: int, rng: np.random.Generator) -> np.ndarray | None:
    """A random pattern that decodes."""
    for _ in range(50):
        missing = rng.permutation(code.workers)[:count]
        if code.decodable(np.setdiff1d(np.arange(code.workers), missing)):
            return missing
    return None


def burst(code: ErasureCode, count: int, rng: np.random.Generator) -> np.ndarray | None:
    """Neighbours, from a random start that decodes."""
    for start in rng.permutation(code.workers)[:50]:
        missing = (start + np.arange(count)) % code.workers
        if code.decodable(np.setdiff1d(np.arange(code.workers), missing)):
            return missing
    return None


def worst(code: ErasureCode, count: int, rng: np.random.Generator, steps: int) -> np.ndarray | None:
    """The worst pattern that a search by swaps finds."""
    missing = random_pattern(code, count, rng)
    if missing is None or count == 0:
        return missing
    error = predicted(code, missing) or 0.0
    for _ in range(steps):
        present = np.setdiff1d(np.arange(code.workers), missing)
        swapped = missing.copy()
        swapped[rng.integers(count)] = rng.choice(present)
        other = predicted(code, swapped)
        if other is not None and other > error:
            missing, error = swapped, other
    return missing


def true_error(
    code: ErasureCode, missing: np.ndarray | None, dtype: str, rng: np.random.Generator
) -> float | None:
    """Relative error of the product decoded without the missing workers."""
    if missing is None:
        return None
    S = np.setdiff1d(np.arange(code.workers), missing)
    U = rng.standard_normal((code.data_blocks, COLUMNS)).astype(dtype)
    X = code.plan(S).apply(code.encode(U)[S].astype(np.float64))
    return float(np.linalg.norm(X - U) / np.linalg.norm(U))


def measure(family: Family, workers: int, steps: int) -> list[Row]:
    """The rows of one code."""
    blocks = family.blocks(workers)
    code = make_code(family.name, workers=workers, data_blocks=blocks, **family.options)
    rng = np.random.default_rng(workers)
    count = (workers - blocks) // 2
    if family.name == "product":
        count = min(count, 3)  # four missing at the corners of a rectangle are too many
    patterns = {
        "random": random_pattern(code, count, rng),
        "burst": burst(code, count, rng),
        "worst": worst(code, count, rng, steps),
    }
    return [
        Row(
            family.row,
            workers,
            blocks,
            name,
            count,
            true_error(code, missing, "float32", rng),
            true_error(code, missing, "float64", rng),
        )
        for name, missing in patterns.items()
    ]


def line(row: Row) -> str:
    """One row of the table."""
    errors = [
        f"{'-':>8s}" if error is None else f"{error:8.1e}" for error in (row.float32, row.float64)
    ]
    return (
        f"{row.code:18s} {row.workers:5d} {row.data_blocks:5d} {row.missing:5d}  "
        f"{row.pattern:7s} {' '.join(errors)}"
    )


def main() -> int:
    """Print the table row by row and save it."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.accuracy",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--small", action="store_true", help="a few seconds: does it still run?")
    small = parser.parse_args().small
    print(f"{'code':18s} {'N':>5s} {'s':>5s} {'miss':>5s}  {'pattern':7s}  float32  float64")
    sizes = {16: 20} if small else {64: 300, 256: 150, 1024: 20, 4096: 3}
    rows: list[Row] = []
    for workers, steps in sizes.items():
        for family in FAMILIES:
            if workers <= family.largest:
                found = measure(family, workers, steps)
                rows += found
                print("\n".join(map(line, found)), flush=True)
    path = save("accuracy", {"small": small, "rows": [asdict(row) for row in rows]})
    print(f"written to {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
