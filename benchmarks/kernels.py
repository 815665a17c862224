"""Polar codes by their kernels: arrivals needed, times over a copy, float32 error.

Redundancy 1/4. Arrivals over s in random order, of the sequential decoder alone (seq) and of
whichever is ready first; the sketch's predicted error with half of the answers; encoding over a
copy of the coded blocks; sequential decoding at its threshold over a copy of the answers; error
there of float32 answers.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np

from benchmarks.codes import over_copy
from benchmarks.harness import save
from polarcodes import ErasureCode, make_code
from polarcodes.kernels.kernel import dct_kernel, hadamard_kernel
from polarcodes.thresholds import arrivals_needed

VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    "Hadamard, punctured": {"kernels": "hadamard"},
    "partial, 4 stages": {"stages": 4},
    "DCT 4": {"kernels": [dct_kernel(4)] * 4},
    "DCT 8, 8, 4": {"kernels": [dct_kernel(8), dct_kernel(8), dct_kernel(4)]},
    "DCT 16": {"kernels": [dct_kernel(16)] * 2},
    "Hadamard as kernels": {"kernels": [hadamard_kernel()] * 8},
}
ROWS = (
    *[("default", n) for n in (48, 65, 96, 100, 192, 243, 256, 1000, 972, 1024)],
    *[("Hadamard, punctured", n) for n in (48, 65, 96, 100, 192, 243, 1000)],
    *[("partial, 4 stages", n) for n in (96, 256)],
    *[(name, 256) for name in ("DCT 4", "DCT 8, 8, 4", "DCT 16", "Hadamard as kernels")],
)


@dataclass(frozen=True)
class Row:
    """What one variant does at one size."""

    variant: str
    workers: int
    data_blocks: int
    order: int
    sequential: float
    either: float
    sketch: float
    encode: float
    decode: float
    error_median: float
    error_worst: float


def sequential_set(code: ErasureCode, order: np.ndarray) -> np.ndarray:
    """The first arrivals of ``order`` that the sequential decoder takes."""
    state = code.arrivals()
    for worker in order.tolist():
        state.add(worker)
        if len(state) >= code.data_blocks and state.method == "sequential":
            break
    return order[: len(state)]


def measure(variant: str, workers: int, trials: int, size: int) -> Row:
    """One row: thresholds over ``trials`` orders, errors over ten, times of one."""
    blocks = workers * 3 // 4
    code = make_code("polar", workers=workers, data_blocks=blocks, seed=1, **VARIANTS[variant])
    rng = np.random.default_rng(workers)
    needed = arrivals_needed(code, rng, 4 * trials, quick=True).mean() / blocks
    either = arrivals_needed(code, rng, max(2, trials // 4)).mean() / blocks
    S, errors = np.arange(workers), []
    for _ in range(10):
        S = sequential_set(code, rng.permutation(workers))
        U = rng.standard_normal((blocks, 8))
        X = code.plan(S).apply(code.encode(U)[S].astype(np.float32))
        errors.append(float(np.linalg.norm(X - U) / np.linalg.norm(U)))
    buffer = np.zeros((workers, size // (4 * workers)), np.float32)
    buffer[code.slots] = rng.standard_normal((blocks, buffer.shape[1]), dtype=np.float32)
    encode = over_copy(partial(code.encode_inplace, buffer), buffer, 5)
    answers = rng.standard_normal((S.size, buffer.shape[1]), dtype=np.float32)
    decode = over_copy(partial(code.plan(S).apply, answers), answers, 3)
    transform = getattr(code, "transform", None)
    order = workers if transform is None else transform.order
    return Row(
        variant,
        workers,
        blocks,
        order,
        float(needed),
        float(either),
        code.predicted_error(workers // 2),
        encode,
        decode,
        median(errors),
        max(errors),
    )


def line(row: Row) -> str:
    """One row of the table."""
    return (
        f"{row.variant:20s} {row.workers:5d} {row.data_blocks:5d} {row.order:5d} "
        f"{row.sequential:7.3f} {row.either:7.3f} {row.sketch:7.3f} {row.encode:7.1f} "
        f"{row.decode:7.1f} {row.error_median:8.1e} {row.error_worst:8.1e}"
    )


def main() -> int:
    """Print the table row by row and save it."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.kernels",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--small", action="store_true", help="a few seconds: does it still run?")
    small = parser.parse_args().small
    print(
        f"{'kernels':20s} {'N':>5s} {'s':>5s} {'order':>5s} {'seq/s':>7s} {'first/s':>7s} "
        f"{'sketch':>7s} {'encode':>7s} {'decode':>7s} {'error':>8s} {'worst':>8s}"
    )
    rows = []
    for variant, workers in [row for row in ROWS if not small or row[1] < 257][
        :: 2 if small else 1
    ]:
        rows.append(measure(variant, workers, *((4, 1 << 18) if small else (100, 1 << 24))))
        print(line(rows[-1]), flush=True)
    path = save("kernels", {"small": small, "rows": [asdict(row) for row in rows]})
    print(f"written to {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
