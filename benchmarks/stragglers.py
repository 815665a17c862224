"""What coding saves when workers are late: measured Lambda delays replayed on coded and uncoded
runs.

`short-sydney-rare-long-tail`: each of its 20 rounds, 5 draws of 64 of the 256 columns. N = 64, s =
52; the uncoded run has 52 blocks on 52 workers and meets the same delays. Excess = mean wall time -
mean wall time of the undelayed runs in between. Target: the coded excess is at most 0.3 of the
uncoded one.

    python -m benchmarks.stragglers [--data FOLDER | --small] [--scale 1.0]

FOLDER (or POLARLAMBDA_DELAYS) holds the measured profiles; without it there is nothing to replay.
--small takes its rounds from the model `lambda-rare-tail` that the project ships. --scale
multiplies all delays, to make a run shorter.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Ratio, WrongResult, save, table
from benchmarks.local_runs import WORKERS, Pair, warm_pair
from polarcodes.delays import from_table, make_delays

DATA_BLOCKS = 52
TARGET = 0.3
SHAPE = (4_096, 1_024)  # small, so that the delays are what is measured
PROFILE = "short-sydney-rare-long-tail.csv"
DRAWS = 5
UNDELAYED_EVERY = 5
SMALL_ROUNDS, SMALL_SCALE = 12, 0.2


def measured_rounds(profile: Path) -> np.ndarray:
    """(100, 64) seconds: every measured round, five draws of 64 of its workers."""
    excess = from_table(np.loadtxt(profile, delimiter=",")).excess
    rng = np.random.default_rng(0)
    draws = [row[rng.permutation(len(row))[:WORKERS]] for row in excess for _ in range(DRAWS)]
    return np.array(draws)


def modelled_rounds(count: int) -> np.ndarray:
    """(count, 64) seconds from `lambda-rare-tail`: of 2,000 rounds, every 2,000 / count-th by its
    largest delay.

    A plain sample of so few rounds would hold no stall at all, or too many.
    """
    rounds = make_delays("lambda-rare-tail").sample(np.random.default_rng(0), 2_000, WORKERS)
    by_largest = rounds[np.argsort(rounds.max(axis=1))]
    chosen = by_largest[np.arange(count) * 2_000 // count + 1_000 // count]
    return np.random.default_rng(1).permutation(chosen)


def measure(rounds: np.ndarray, pair: Pair) -> dict[str, Any]:
    """Wall seconds of delayed and undelayed runs, both kinds, and the ratio of the excesses."""
    delayed: dict[str, list[float]] = {"coded": [], "uncoded": []}
    undelayed: dict[str, list[float]] = {"coded": [], "uncoded": []}
    for number, delays in enumerate(rounds):
        kinds = ("coded", "uncoded") if number % 2 == 0 else ("uncoded", "coded")
        for kind in kinds:
            if number % UNDELAYED_EVERY == 0:
                undelayed[kind].append(pair.wall_seconds(kind))
            delayed[kind].append(pair.wall_seconds(kind, delays))
    excess = {kind: float(np.mean(delayed[kind]) - np.mean(undelayed[kind])) for kind in delayed}
    return {
        "shape": list(SHAPE),
        "workers": WORKERS,
        "data_blocks": DATA_BLOCKS,
        "rounds": len(rounds),
        "delayed_seconds": delayed,
        "undelayed_seconds": undelayed,
        "excess": excess,
        "ratio": excess["coded"] / excess["uncoded"],
    }


def main(arguments: list[str]) -> int:
    """Print the table and write benchmarks/results/stragglers.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("POLARLAMBDA_DELAYS"))
    parser.add_argument("--small", action="store_true", help="12 rounds of the shipped model")
    parser.add_argument("--scale", type=float, help=f"default 1, with --small {SMALL_SCALE}")
    options = parser.parse_args(arguments)
    if options.small:
        source, rounds = "the model lambda-rare-tail", modelled_rounds(SMALL_ROUNDS)
        scale = SMALL_SCALE if options.scale is None else options.scale
    elif options.data is None or not (profile := Path(options.data) / PROFILE).is_file():
        print(f"skipped: no {PROFILE} in {options.data}; give --data or POLARLAMBDA_DELAYS")
        return 0
    else:
        source, rounds = PROFILE, measured_rounds(profile)
        scale = 1.0 if options.scale is None else options.scale
    try:
        with warm_pair(*SHAPE, DATA_BLOCKS) as pair:
            results = measure(rounds * scale, pair) | {"source": source, "scale": scale}
    except WrongResult as error:
        print(f"WRONG RESULT: {error}")
        return 1
    show(results)
    print(f"written to {save('stragglers', results)}")
    return 0


def show(results: dict[str, Any]) -> None:
    """What was run, the wall times, and the ratio beside its target."""
    print(
        f"{results['rounds']} rounds of {results['source']}, delays times {results['scale']:g}; "
        f"N = {WORKERS}, s = {DATA_BLOCKS}, matrix {SHAPE[0]} x {SHAPE[1]} of uint8"
    )
    print(f"{'':>9}{'undelayed s':>13}{'mean s':>9}{'median s':>10}{'max s':>8}{'excess s':>10}")
    for kind, delayed in results["delayed_seconds"].items():
        print(
            f"{kind:>9}{np.mean(results['undelayed_seconds'][kind]):>13.2f}{np.mean(delayed):>9.2f}"
            f"{np.median(delayed):>10.2f}{np.max(delayed):>8.2f}{results['excess'][kind]:>10.2f}"
        )
    excess = results["excess"]
    target = TARGET if results["source"] == PROFILE else None
    row = Ratio("excess", results["ratio"], excess["coded"], excess["uncoded"], "s", target)
    print(table([row]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
