"""Coded sub-tasks: what several messages per worker save on measured Lambda delays, simulated.

256 workers. Charged are: the larger blocks of a code (N / s of an uncoded one), and 1 % of the
median task for every message, during which the worker computes nothing. Completion is the mean over
rounds of the moment when the answers decode, over the median task of the profile. s is the best
one of N/2..N for each profile, scheme and r.

- `none`: 256 blocks on 256 workers, all are needed;
- `relaunch`: the slowest 5 % are started once more when the others are done;
- `one`: one coded message per worker (`ideal`: any s answers decode; `polar`: sequential decoding);
- `r = 4, 8, 16`: N r coded sub-blocks, r for each worker in order; any s r results decode (ideal),
  or sequential decoding of a polar code of length N r with randomly placed sub-tasks.

    python -m benchmarks.subtasks [--data FOLDER] [--small] [--overhead 0.01]

FOLDER (or POLARLAMBDA_DELAYS) holds the measured profiles; without it the shipped delay models are
all there is. Target: at most 1.12 at r = 8 with the ideal code, mean over the measured profiles.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import cache

import numpy as np

from benchmarks import replay
from benchmarks.harness import Ratio, save, table
from benchmarks.replay import Times
from polarcodes import ErasureCode, make_code
from polarcodes.thresholds import decoding_times

OVERHEAD = 0.01
TARGET = 1.12
LOADS = (4, 8, 16)
RELAUNCHED = 0.05

Decode = Callable[[Times, int], Times]
"""(rounds, results) times and the number of data blocks -> (rounds,) moments of decoding."""


def ideal(times: Times, data: int) -> Times:
    """The data-th answer."""
    return np.partition(times, data - 1, axis=1)[:, data - 1]


def polar(times: Times, data: int) -> Times:
    """Sequential decoding, sub-tasks placed by a random permutation."""
    place = np.random.default_rng(0).permutation(times.shape[1])
    return decoding_times(_polar_code(times.shape[1], data), times[:, place])


@cache
def _polar_code(length: int, data: int) -> ErasureCode:
    return make_code("polar", workers=length, data_blocks=data)


DECODERS: dict[str, Decode] = {"ideal": ideal, "polar": polar}


def results_at(times: Times, r: int, s: int, straggler: str, overhead: float) -> Times:
    """(rounds, N r): when each of a worker's r results is there."""
    part = times.shape[1] / (s * r)
    moments = [
        replay.part_of_task(times, j * part, straggler) + j * overhead for j in range(1, r + 1)
    ]
    return np.stack(moments, axis=2).reshape(len(times), -1)


def coded(
    times: Times, r: int, decode: Decode, straggler: str, grid: list[int], overhead: float
) -> dict[str, float]:
    """Best mean completion over the median task, and its s."""
    median = float(np.median(times))
    best = {"ratio": np.inf, "s": 0}
    for s in grid:
        results = results_at(times, r, s, straggler, overhead * median)
        ratio = float(decode(results, s * r).mean()) / median
        if ratio < best["ratio"]:
            best = {"ratio": ratio, "s": s}
    return best


def relaunched(times: Times) -> float:
    """Mean completion over the median task when the slowest 5 % are started again."""
    rng = np.random.default_rng(0)
    on_time = int(times.shape[1] * (1 - RELAUNCHED))
    moment = np.partition(times, on_time - 1, axis=1)[:, on_time - 1 : on_time]
    again = moment + rng.choice(times.ravel(), times.shape)
    return float(np.minimum(times, again).max(axis=1).mean() / np.median(times))


def measure(
    times: Times, straggler: str, overhead: float, small: bool
) -> dict[str, dict[str, float]]:
    """All schemes on one profile."""
    N = times.shape[1]
    fine = list(range(N // 2, N + 1, 8 if small else 2))
    coarse = list(range(N // 2, N + 1, 32 if small else 8))
    found: dict[str, dict[str, float]] = {
        "none": {"ratio": float(times.max(axis=1).mean() / np.median(times)) + overhead},
        "relaunch": {"ratio": relaunched(times) + overhead},
    }
    for name, decode in DECODERS.items():
        for r in (1, *LOADS[: 1 if small else None]):
            label = f"one {name}" if r == 1 else f"r={r} {name}"
            grid = fine if name == "ideal" else coarse
            found[label] = coded(times, r, decode, straggler, grid, overhead)
    return found


def main(arguments: list[str]) -> int:
    """Print the tables and write benchmarks/results/subtasks.json."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    replay.add_options(parser)
    parser.add_argument(
        "--overhead", type=float, default=OVERHEAD, help="of a message, in median tasks"
    )
    options = parser.parse_args(arguments)
    profiles = {} if options.small else replay.measured(options.data)
    if not profiles:
        print(replay.why_skipped(options.data))
    sources = profiles | replay.modelled(2 if options.small else 60)
    results: dict[str, dict[str, dict[str, dict[str, float]]]] = {}
    for straggler in replay.STRAGGLERS:
        results[straggler] = {
            name: measure(times, straggler, options.overhead, options.small)
            for name, times in sources.items()
        }
        show(straggler, results[straggler])
    rows = targets(results, list(profiles))
    if rows:
        print(table(rows))
    stored = {"overhead": options.overhead, "small": options.small, "results": results}
    print(f"written to {save('subtasks', stored)}")
    return 0


def means(results: dict[str, dict[str, dict[str, float]]], names: list[str]) -> dict[str, float]:
    """Mean over the profiles of each scheme."""
    schemes = next(iter(results.values()))
    return {
        scheme: float(np.mean([results[name][scheme]["ratio"] for name in names]))
        for scheme in schemes
    }


def targets(
    results: dict[str, dict[str, dict[str, dict[str, float]]]], names: list[str]
) -> list[Ratio]:
    """The aim beside what was found, for both kinds of stragglers."""
    if not names:
        return []
    rows = []
    for straggler, found in results.items():
        mean = means(found, names)
        rows.append(
            Ratio(
                f"{straggler}: r=8 over the median task",
                mean["r=8 ideal"],
                mean["r=8 ideal"],
                1.0,
                "tasks",
                TARGET,
            )
        )
    return rows


def show(straggler: str, results: dict[str, dict[str, dict[str, float]]]) -> None:
    """One line for each profile, one column for each scheme, the best s in brackets."""
    print(f"\nstragglers: {straggler}; mean completion over the median task (best s)")
    schemes = list(next(iter(results.values())))
    lines = [["", *schemes]]
    for name, found in results.items():
        cells = [
            f"{found[scheme]['ratio']:.2f}" + (f" ({s:g})" if (s := found[scheme].get("s")) else "")
            for scheme in schemes
        ]
        lines.append([name, *cells])
    measured = [name for name in results if not name.startswith("model ")]
    if measured:
        mean = means(results, measured)
        lines.append(["mean of the measured", *(f"{mean[scheme]:.2f}" for scheme in schemes)])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for first, *rest in lines:
        cells = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        print("  ".join([first.ljust(widths[0]), *cells]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
