"""Residents against one invocation per worker and product, on the local stack.

8 workers with a block of 20 MB each, which they read at the 95 MB/s that one function was measured
to get from S3 (`--rate 0`: as fast as loopback is); products in series, every x depending on the
product before. Sessions of both modes alternate, and a ratio compares neighbours, because both then
see the same weather. The first product of a session (cold starts, loading the blocks) is told
apart. Targets: an iteration with residents at least 3 times faster; the bytes that workers read in
an iteration are those of x alone.

    python -m benchmarks.resident [--small] [--rate 95]
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from typing import Any, Literal

import numpy as np

from benchmarks.harness import Ratio, WrongResult, require_close, save, table
from coordinator.platform import Platform
from polarlambda import CodedMatrix, encode
from polarlambda.local.stack import LocalStack

WORKERS, DATA_BLOCKS = 8, 6
COLUMNS = 2_048
FASTER = 3.0
TOLERANCE = 1e-4
Mode = Literal["invoke", "resident"]
MODES: tuple[Mode, ...] = ("invoke", "resident")


def series(matrix: CodedMatrix, dense: np.ndarray, mode: Mode, count: int) -> dict[str, Any]:
    """One session of 1 + `count` products: seconds of each, and what it used."""
    x = np.ones(COLUMNS, np.float32)
    seconds = []
    with matrix.session(mode=mode) as session:
        for number in range(1 + count):
            before = session.usage
            began = time.perf_counter()
            result = session.multiply(x)
            seconds.append(time.perf_counter() - began)
            if number == 0:
                after_first = session.usage
            require_close(f"{mode}, product {number}", result.value, dense @ x, TOLERANCE)
            x = (result.value[:COLUMNS] / np.abs(result.value[:COLUMNS]).max()).astype(np.float32)
        last = session.usage
    whole = session.usage
    return {
        "first": seconds[0],
        "seconds": statistics.median(seconds[1:]),
        "bytes_read": last.bytes_read - before.bytes_read,
        "requests": (last.requests - after_first.requests) / count,
        "gb_seconds": (last.gb_seconds - after_first.gb_seconds) / count,
        "dollars": (last.dollars - after_first.dollars) / count,
        "whole": whole.to_json(),
    }


def measure(megabytes: float, rounds: int, count: int, rate: float) -> dict[str, Any]:
    """`rounds` sessions of each mode, alternating."""
    rows = max(DATA_BLOCKS * round(megabytes * 1e6 / 4 / COLUMNS), COLUMNS)
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((rows, COLUMNS), dtype=np.float32)
    found: dict[str, list[dict[str, Any]]] = {mode: [] for mode in MODES}
    billed: dict[str, float] = dict.fromkeys(MODES, 0.0)
    before = dict(os.environ)
    with LocalStack(build="stale", s3_rate=rate * 1e6) as stack:
        os.environ.update(stack.environment)  # the product finds this stack as it finds AWS
        try:
            encode(dense, "series", workers=WORKERS, data_blocks=DATA_BLOCKS)
            stack.warm("WorkerFunction", WORKERS)
            exact = dense.astype(np.float64)
            with CodedMatrix.open("series") as matrix:
                plan = None
                for number in range(rounds):
                    for mode in MODES[:: 1 if number % 2 == 0 else -1]:
                        known = len(stack.invocations())
                        found[mode].append(series(matrix, exact, mode, count))
                        while stack.activity()["running"]:
                            time.sleep(0.05)
                        billed[mode] += sum(i.billed_ms for i in stack.invocations()[known:])
                with matrix.session() as session:
                    plan = session.plan(x_dtype="float32")
        finally:
            os.environ.clear()
            os.environ.update(before)
    return {
        "workers": WORKERS,
        "block_megabytes": megabytes,
        "rate": rate,
        "rounds": rounds,
        "products": count,
        "modes": found,
        "billed_seconds": {mode: ms / 1000 for mode, ms in billed.items()},
        "plan": plan.to_json(),
    }


def show(results: dict[str, Any]) -> list[Ratio]:
    """The table of both modes, and the ratios beside their targets."""
    count, rounds = results["products"], results["rounds"]
    print(
        f"{WORKERS} workers (any {DATA_BLOCKS} answers decode), blocks of "
        f"{results['block_megabytes']:g} MB read at {results['rate']:g} MB/s, {rounds} sessions of "
        f"1 + {count} products in each mode"
    )
    print(
        f"{'per product':>12}{'seconds':>9}{'first':>8}{'MB read':>10}{'requests':>10}"
        f"{'GB-s':>8}{'$ / 1,000':>11}{'billed s':>10}"
    )
    middle = {
        mode: {
            name: statistics.median(one[name] for one in sessions)
            for name in ("seconds", "first", "bytes_read", "requests", "gb_seconds", "dollars")
        }
        for mode, sessions in results["modes"].items()
    }
    for mode, one in middle.items():
        each = results["billed_seconds"][mode] / rounds / (1 + count)
        print(
            f"{mode:>12}{one['seconds']:>9.3f}{one['first']:>8.2f}{one['bytes_read'] / 1e6:>10.3f}"
            f"{one['requests']:>10.1f}{one['gb_seconds']:>8.2f}{1000 * one['dollars']:>11.3f}"
            f"{each:>10.2f}"
        )
    gap = results["plan"]["break_even"]
    print(f"on Lambda, residents are planned to be cheaper up to {gap:.1f} s between products")
    pairs = zip(*(results["modes"][mode] for mode in MODES), strict=True)
    x_bytes = WORKERS * COLUMNS * 4
    return [
        Ratio(
            "iteration, invoked / resident",
            statistics.median(a["seconds"] / b["seconds"] for a, b in pairs),
            middle["invoke"]["seconds"],
            middle["resident"]["seconds"],
            "s",
            FASTER,
            at_least=True,
        ),
        Ratio(
            "bytes read, resident / x",
            middle["resident"]["bytes_read"] / x_bytes,
            middle["resident"]["bytes_read"] / 1e6,
            x_bytes / 1e6,
            "MB",
            1.0,
        ),
    ]


def main(arguments: list[str]) -> int:
    """Print the table and write benchmarks/results/resident.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="blocks of 3 MB, one session each")
    parser.add_argument("--rate", type=float, default=Platform().s3_read_rate / 1e6, help="MB/s")
    options = parser.parse_args(arguments)
    small, rate = options.small, options.rate
    try:
        results = measure(*((3.0, 1, 3) if small else (20.0, 5, 8)), rate)
    except WrongResult as error:
        print(f"WRONG RESULT: {error}")
        return 1
    ratios = show(results)
    print(table(ratios))
    print(f"written to {save('resident', results | {'small': small})}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
