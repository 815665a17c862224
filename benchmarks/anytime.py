"""Anytime steps against exact ones at equal simulated time and at equal dollars.

Gradient descent with step 1 / L on least squares (W = X^T X, d = 240), 20 workers, the product's
own training code on virtual time (benchmarks/training.py has the timing). `exact` waits for every
product, `anytime` stops it at the error that the step can bear and refers to the last exact one.
The excess is the true suboptimality over the first one. `conjugate` is what exact products can do
besides: a line search along conjugate directions.

    python -m benchmarks.anytime [--data FOLDER] [--picture FILE.png] [--small] [--condition 300]
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import replay
from benchmarks.harness import save
from benchmarks.training import TIMING, WORKERS, delay_models
from benchmarks.training_problem import GOAL, Problem, Trained, train
from polarcodes.delays import DelayModel
from polarlambda.simulation.iterations_schemes import Scheme, best_data_blocks, coded, uncoded

GRID = 200
BEYOND = GOAL / 30  # where trainings end, to compare what others have by then
CURVES = (
    ("no coding", "exact"),
    ("hadamard", "exact"),
    ("hadamard", "anytime"),
    ("sub-tasks r=4", "exact"),
    ("sub-tasks r=4", "anytime"),
    ("hadamard", "conjugate"),
)


@dataclass(frozen=True)
class Line:
    """One scheme and mode: mean seconds, dollars and steps to the goal, share of exact products,
    and the excess when exact steps of the same scheme reach the goal, by time and by dollars."""

    delays: str
    scheme: str
    mode: str
    steps: float
    exact_share: float
    seconds: float
    dollars: float
    at_equal_time: float
    at_equal_dollars: float


def schemes(delays: DelayModel, rounds: int) -> dict[str, Scheme]:
    """What is compared."""
    one = coded("hadamard", WORKERS, data_blocks=16)
    four = coded("sub-tasks r=4", WORKERS, data_blocks=10, messages=4)
    made = [uncoded(WORKERS)]
    made += [best_data_blocks(scheme, delays, TIMING, rounds=rounds) for scheme in (one, four)]
    return {scheme.name: scheme for scheme in made}


def measure(
    problem: Problem, delays: DelayModel, seeds: range, rounds: int
) -> dict[tuple[str, str], list[Trained]]:
    """Trainings of every curve."""
    every = schemes(delays, rounds)
    return {
        (name, mode): [
            train(problem, every[name], delays, TIMING, mode=mode, seed=seed, goal=BEYOND)
            for seed in seeds
        ]
        for name, mode in CURVES
    }


def lines(delays: str, found: dict[tuple[str, str], list[Trained]]) -> list[Line]:
    """The table of one delay model."""
    rows = []
    for (name, mode), runs in found.items():
        base = found.get((name, "exact"), runs)
        rows.append(
            Line(
                delays,
                name,
                mode,
                float(np.mean([run.to_target for run in runs])),
                float(np.mean([run.exact[: (run.to_target or 0) + 1].mean() for run in runs])),
                float(np.mean([run.seconds[run.to_target] for run in runs])),
                float(np.mean([run.dollars[run.to_target] for run in runs])),
                _when(runs, "seconds", [run.seconds[run.to_target] for run in base]),
                _when(runs, "dollars", [run.dollars[run.to_target] for run in base]),
            )
        )
    return rows


def _when(runs: list[Trained], by: str, ends: list[float]) -> float:
    """Geometric mean of the excess at what the exact run of the same seed took to the goal; what is
    better than `BEYOND` counts as that."""
    logs = [
        np.interp(end, getattr(run, by), np.log(run.excess))
        for run, end in zip(runs, ends, strict=True)
    ]
    return float(np.exp(np.mean(logs)))


def curve(runs: list[Trained], by: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(grid, geometric mean of the excess) up to the goal."""
    ends = [getattr(run, by)[run.to_target] for run in runs]
    grid = np.linspace(0, float(np.mean(ends)), GRID)
    logs = [
        np.interp(grid * end / np.mean(ends), getattr(run, by), np.log(run.excess))
        for run, end in zip(runs, ends, strict=True)
    ]
    return grid, np.exp(np.mean(logs, axis=0))


def table(rows: list[Line]) -> str:
    """Aligned text."""
    head = (
        f"{'delays':<18}{'scheme':<15}{'mode':<11}{'steps':>6}{'exact':>7}{'seconds':>9}"
        f"{'dollars':>9}{'over exact':>12}{'':>6} | excess at equal time, dollars"
    )
    base = {(row.delays, row.scheme): row for row in rows if row.mode == "exact"}
    out = [head]
    for row in rows:
        than = base[row.delays, row.scheme]
        out.append(
            f"{row.delays:<18}{row.scheme:<15}{row.mode:<11}{row.steps:6.0f}{row.exact_share:7.0%}"
            f"{row.seconds:9.0f}{row.dollars:9.4f}{row.seconds / than.seconds:7.2f} time"
            f"{row.dollars / than.dollars:6.2f} $"
            f" |{row.at_equal_time:10.1e}{row.at_equal_dollars:10.1e}"
        )
    return "\n".join(out)


def main(arguments: list[str]) -> int:
    """Print the table, draw, and write benchmarks/results/anytime.json."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    replay.add_options(parser)
    parser.add_argument("--condition", type=float, default=300.0, help="of W")
    parser.add_argument("--picture", type=Path, metavar="FILE.png")
    options = parser.parse_args(arguments)
    problem = Problem.make(
        8.0 if options.small else options.condition, features=60 if options.small else 240
    )
    models = delay_models(options.data, options.small)
    if options.small:
        models.popitem()
    if "measured" not in models:
        print(replay.why_skipped(options.data))
    seeds, rounds = range(1 if options.small else 5), 40 if options.small else 400
    found = {name: measure(problem, model, seeds, rounds) for name, model in models.items()}
    rows = [row for name, runs in found.items() for row in lines(name, runs)]
    print(f"goal: an excess of {GOAL:g}")
    print(table(rows))
    if options.picture is not None:
        from benchmarks.anytime_picture import draw

        name = next(iter(found))
        panels = {
            by: {key: curve(runs, by) for key, runs in found[name].items()}
            for by in ("seconds", "dollars")
        }
        draw(panels, name, options.picture)
        print(f"drawn to {options.picture}")
    path = save("anytime", {"small": options.small, "rows": [asdict(row) for row in rows]})
    print(f"written to {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
