"""Every code side by side: arrivals needed, encoding and decoding time over a copy, float32 error.

Redundancy is 1/8 where the code allows it: replication needs half, a square product code takes its
own, no coding has none. Arrivals come in random order. Times are over a memory copy of the coded
blocks (encoding) and of the answers (decoding, the plan made before). Blocks are float32, encoded
in float32 and decoded in float64: errors at the first decodable set.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.codes_picture import draw
from benchmarks.harness import WrongResult, save, seconds
from polarcodes import ErasureCode, make_code

BYTES = 1 << 25  # of coded blocks that are encoded and decoded


@dataclass(frozen=True)
class Family:
    """A code under the name of its row; ``largest`` N that it is measured at."""

    row: str
    name: str
    options: dict[str, Any]
    blocks: Callable[[int], int]
    largest: int


def eighth(workers: int) -> int:
    return workers - workers // 8


FAMILIES = (
    Family("uncoded", "uncoded", {}, lambda n: n, 4096),
    Family("replication", "replication", {}, lambda n: n // 2, 4096),
    Family("product", "product", {}, lambda n: (math.isqrt(n) - 1) ** 2, 1024),
    Family("LT, peeling", "lt", {"decoder": "peeling"}, lambda n: n * 3 // 4, 256),
    Family("LT, inactivation", "lt", {}, eighth, 256),
    Family("MDS, random", "mds", {}, eighth, 1024),
    Family("MDS, Chebyshev", "mds", {"basis": "chebyshev"}, eighth, 1024),
    Family("Berrut", "berrut", {}, eighth, 256),
    Family("polar", "polar", {}, eighth, 4096),
    Family("Hadamard, 1 round", "hadamard", {"rounds": 1}, eighth, 4096),
    Family("Hadamard, rotated", "hadamard", {}, eighth, 4096),
)


@dataclass(frozen=True)
class Row:
    """What one code does at one size; ``mean`` and ``p99`` are arrivals over s."""

    code: str
    workers: int
    data_blocks: int
    orders: int
    mean: float
    p99: float
    encode: float
    decode: float
    method: str
    error_median: float
    error_worst: float


def decisive(code: ErasureCode, order: np.ndarray) -> np.ndarray:
    """The first arrivals of ``order`` that decode."""
    state = code.arrivals()
    state.update(order[: code.data_blocks - 1])
    for worker in order[code.data_blocks - 1 :].tolist():
        state.add(worker)
        if state.decodable:
            return order[: len(state)]
    raise WrongResult(f"{code!r} does not decode all its answers")


def over_copy(action: Callable[[], Any], copied: np.ndarray, pairs: int) -> float:
    """Median ratio of the action's time over that of a copy made right after it."""
    action()
    ratios = []
    for _ in range(pairs):
        taken = seconds(action)
        ratios.append(taken / seconds(copied.copy))
    return median(ratios)


def measure(family: Family, workers: int, orders: int, pairs: int, size: int) -> Row:
    """One row: thresholds over fresh codes and orders, errors of the first ten, times of one."""
    blocks = family.blocks(workers)
    rng = np.random.default_rng(workers)
    counts, errors = [], []
    code = make_code(family.name, workers=workers, data_blocks=blocks, **family.options)
    S = np.arange(workers)
    for seed in range(orders):
        code = make_code(
            family.name, workers=workers, data_blocks=blocks, seed=seed, **family.options
        )
        S = decisive(code, rng.permutation(workers))
        counts.append(S.size)
        if seed < 10:
            U = rng.standard_normal((blocks, 16), dtype=np.float32)
            X = code.plan(S).apply(code.encode(U)[S].astype(np.float64))
            errors.append(float(np.linalg.norm(X - U) / np.linalg.norm(U)))
    buffer = np.zeros((workers, size // (4 * workers)), np.float32)
    buffer[code.slots] = rng.standard_normal((blocks, buffer.shape[1]), dtype=np.float32)
    encode = over_copy(partial(code.encode_inplace, buffer), buffer, pairs)
    answers = rng.standard_normal((S.size, buffer.shape[1]), dtype=np.float32)
    plan = code.plan(S)
    decode = over_copy(partial(plan.apply, answers), answers, pairs)
    needed = np.array(counts) / blocks
    return Row(
        family.row,
        workers,
        blocks,
        orders,
        float(needed.mean()),
        float(np.quantile(needed, 0.99)),
        encode,
        decode,
        plan.method,
        median(errors),
        max(errors),
    )


def line(row: Row) -> str:
    """One row of the table."""
    return (
        f"{row.code:18s} {row.workers:5d} {row.data_blocks:5d} {row.mean:7.3f} {row.p99:7.3f} "
        f"{row.encode:8.1f} {row.decode:8.1f}  {row.method:11s} {row.error_median:8.1e} "
        f"{row.error_worst:8.1e}"
    )


def main() -> int:
    """Print the table row by row and save it."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.codes",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--small", action="store_true", help="a few seconds: does it still run?")
    parser.add_argument("--picture", type=Path, metavar="PNG", help="draw the table there as well")
    arguments = parser.parse_args()
    small = arguments.small
    print(
        f"{'code':18s} {'N':>5s} {'s':>5s} {'mean/s':>7s} {'p99/s':>7s} {'encode':>8s} "
        f"{'decode':>8s}  {'decoder':11s} {'error':>8s} {'worst':>8s}"
    )
    sizes = {16: 5} if small else {64: 300, 256: 100, 1024: 10, 4096: 3}
    rows = []
    try:
        for workers, orders in sizes.items():
            for family in FAMILIES:
                if workers <= family.largest:
                    size = 1 << 20 if small else BYTES
                    rows.append(measure(family, workers, orders, 3, size))
                    print(line(rows[-1]), flush=True)
    except WrongResult as error:
        print(f"WRONG RESULT: {error}")
        return 1
    path = save("codes", {"small": small, "rows": [asdict(row) for row in rows]})
    print(f"written to {path}")
    if arguments.picture is not None:
        draw([asdict(row) for row in rows], arguments.picture)
        print(f"written to {arguments.picture}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
