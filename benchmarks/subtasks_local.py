"""Several messages per worker on the local stack: what delays add to the wall time of a product.

32 workers. The same matrix is encoded for one message per worker and for `--subtasks 4`, each with
the redundancy that `encode` chooses for it (with sub-tasks redundancy costs no time: workers stop).
Each round of delays is replayed on both: a worker sleeps before it begins. Excess = mean wall time
- mean wall time of the undelayed runs in between. Target: with r = 4 at most half of that with one
message.

    python -m benchmarks.subtasks_local [--data FOLDER] [--small] [--rounds 20] [--scale 1.0]

FOLDER (or POLARLAMBDA_DELAYS) holds the measured profiles, of which short-sydney-rare-long-tail is
replayed; without it, and with --small, rounds come from the model lambda-rare-tail that the project
ships.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Ratio, WrongResult, require_close, save, seconds, table
from polarcodes.delays import from_table, make_delays
from polarlambda import CodedMatrix, encode
from polarlambda.local.stack import LocalStack

WORKERS, SUBTASKS = 32, 4
TARGET = 0.5
SHAPE = (4_096, 1_024)  # small, so that the delays are what is measured
PROFILE = "short-sydney-rare-long-tail.csv"
UNDELAYED_EVERY = 2
TOLERANCE = 1e-5
KINDS = {"one message": 1, f"r = {SUBTASKS}": SUBTASKS}


def measured_rounds(profile: Path, count: int) -> np.ndarray:
    """(count, 32) seconds: measured rounds in turn, 32 of their workers drawn anew each time."""
    excess = from_table(np.loadtxt(profile, delimiter=",")).excess
    rng = np.random.default_rng(0)
    return np.array(
        [
            excess[number % len(excess)][rng.permutation(excess.shape[1])[:WORKERS]]
            for number in range(count)
        ]
    )


def modelled_rounds(count: int) -> np.ndarray:
    """(count, 32) seconds: of 2,000 rounds, every 2,000 / count-th by its largest delay."""
    rounds = make_delays("lambda-rare-tail").sample(np.random.default_rng(0), 2_000, WORKERS)
    ordered = rounds[np.argsort(rounds.max(axis=1))]
    chosen = ordered[np.arange(count) * 2_000 // count + 1_000 // count]
    return np.random.default_rng(1).permutation(chosen)


class Runs:
    """The matrix in both encodings on a warm stack."""

    def __init__(self, stack: LocalStack, folder: Path) -> None:
        rng = np.random.default_rng(0)
        matrix = rng.integers(0, 256, SHAPE, dtype=np.uint8)
        self.x = rng.standard_normal(SHAPE[1], dtype=np.float32)
        self.expected = matrix @ self.x.astype(np.float64)
        self.stack, self.table = stack, folder / "round.csv"
        self.data_blocks: dict[str, int] = {}
        self.matrices: dict[str, CodedMatrix] = {}
        for number, (kind, r) in enumerate(KINDS.items()):
            name = f"m{number}"
            made = encode(matrix, name, workers=WORKERS, code="hadamard", subtasks=r)
            self.data_blocks[kind] = made.data_blocks
            self.matrices[kind] = CodedMatrix.open(name)
        stack.warm("WorkerFunction", WORKERS)
        for kind in KINDS:
            self.multiply(kind)  # connections and caches

    def multiply(self, kind: str) -> None:
        """One product; WrongResult unless it is exact and that of NumPy."""
        result = self.matrices[kind].multiply(self.x)
        if not result.exact:
            raise WrongResult(f"{kind}: the run ended as {result.state}: {result.message}")
        require_close(kind, result.value, self.expected, TOLERANCE)

    def wall_seconds(self, kind: str, delays: np.ndarray | None = None) -> float:
        """Wall time of one product, `delays` (32,) seconds by worker; then sleepers are woken."""
        if delays is None:
            self.stack.set_chaos()
        else:
            # The service takes the row's minimum off: an extra, unused 0 keeps the values.
            np.savetxt(self.table, np.append(delays, 0.0)[None, :], delimiter=",")
            self.stack.set_chaos(delays=self.table)
        taken = seconds(lambda: self.multiply(kind))
        self.stack.drain()
        return taken


def measure(rounds: np.ndarray, runs: Runs) -> dict[str, Any]:
    """Wall seconds of delayed and undelayed runs of both kinds, and the ratio of the excesses."""
    delayed: dict[str, list[float]] = {kind: [] for kind in KINDS}
    undelayed: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for number, delays in enumerate(rounds):
        for kind in list(KINDS)[:: 1 if number % 2 == 0 else -1]:
            if number % UNDELAYED_EVERY == 0:
                undelayed[kind].append(runs.wall_seconds(kind))
            delayed[kind].append(runs.wall_seconds(kind, delays))
    excess = {kind: float(np.mean(delayed[kind]) - np.mean(undelayed[kind])) for kind in KINDS}
    one, several = (excess[kind] for kind in KINDS)
    return {
        "shape": list(SHAPE),
        "workers": WORKERS,
        "data_blocks": runs.data_blocks,
        "rounds": len(rounds),
        "delayed_seconds": delayed,
        "undelayed_seconds": undelayed,
        "excess": excess,
        "ratio": several / one,
    }


def main(arguments: list[str]) -> int:
    """Print the table and write benchmarks/results/subtasks_local.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("POLARLAMBDA_DELAYS"))
    parser.add_argument("--small", action="store_true", help="6 rounds of the shipped model")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--scale", type=float, default=1.0)
    options = parser.parse_args(arguments)
    profile = Path(options.data or ".") / PROFILE
    count = 6 if options.small else options.rounds
    if options.small or not profile.is_file():
        source, rounds = "the model lambda-rare-tail", modelled_rounds(count)
    else:
        source, rounds = PROFILE, measured_rounds(profile, count)
    before = dict(os.environ)
    try:
        with LocalStack(build="stale") as stack, tempfile.TemporaryDirectory() as folder:
            os.environ.update(stack.environment)  # the product finds this stack as it finds AWS
            results = measure(rounds * options.scale, Runs(stack, Path(folder)))
    except WrongResult as error:
        print(f"WRONG RESULT: {error}")
        return 1
    finally:
        os.environ.clear()
        os.environ.update(before)
    show(results | {"source": source, "scale": options.scale})
    print(f"written to {save('subtasks_local', results | {'source': source})}")
    return 0


def show(results: dict[str, Any]) -> None:
    """What was run, the wall times, and the ratio beside its target."""
    print(
        f"{results['rounds']} rounds of {results['source']}, delays times {results['scale']:g}; "
        f"{WORKERS} workers, matrix {SHAPE[0]} x {SHAPE[1]} of uint8, code hadamard"
    )
    print(
        f"{'':>12}{'needed':>8}{'undelayed s':>13}{'mean s':>9}{'median s':>10}{'max s':>8}"
        f"{'excess s':>10}"
    )
    for kind, delayed in results["delayed_seconds"].items():
        needed = f"{results['data_blocks'][kind]}/{WORKERS * KINDS[kind]}"
        print(
            f"{kind:>12}{needed:>8}{np.mean(results['undelayed_seconds'][kind]):>13.2f}"
            f"{np.mean(delayed):>9.2f}{np.median(delayed):>10.2f}{np.max(delayed):>8.2f}"
            f"{results['excess'][kind]:>10.2f}"
        )
    one, several = results["excess"].values()
    print(table([Ratio("excess", results["ratio"], several, one, "s", TARGET)]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
