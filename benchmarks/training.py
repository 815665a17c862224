"""Training by gradient descent: time per iteration, and time and dollars to a target loss.

Least squares with W = X^T X (d = 240, condition number 100) on 20 workers. Every product is that of
the product's own training code on virtual time (`polarlambda.simulation.iterations`): real numbers,
real codes and estimates, so that partial and estimated gradients have their real effect. A worker's
uncoded share takes 1.5 s; delays come on top, drawn from measured profiles (scaled so that an
undelayed worker takes 1.5 s, 20 workers of a round at a time) or from the shipped models.
Loads are charged: a coded block is N / s times an uncoded one, a schedule's worker has three tasks.
So are x and invocations (0.25 s), a message (0.2 s each), and collecting and decoding (0.25 s).

- exact: every scheme makes the same steps, 1 / L: `time` is the mean of an iteration times their
  number;
- partial: 5 to 30 % of the gradient's entries may be missing, and are not moved (biased: the step
  is short by that share, see `GramGradient`);
- anytime: products stop at the error their step can bear, as differences to the last exact one;
- conjugate: exact products with a line search, for the code that is fastest and without one.

    python -m benchmarks.training [--data FOLDER] [--small] [--condition 100]

FOLDER (or POLARLAMBDA_DELAYS) holds the measured profiles; without it the shipped delay models are
all there is.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass

import numpy as np

from benchmarks import replay
from benchmarks.harness import save
from benchmarks.training_problem import Problem, train
from polarcodes.delays import DelayModel, from_table, make_delays
from polarlambda.simulation.iterations import SimulatedMatrix
from polarlambda.simulation.iterations_schemes import (
    SCHEDULES,
    Scheme,
    Timing,
    best_data_blocks,
    coded,
    relaunched,
    scheduled,
    uncoded,
)

WORKERS, LOAD = 20, 3
TOLERANCES = (0.05, 0.1, 0.2, 0.3)
PARTIAL = ("uc-mmc", "cpgc", "rcsc", "searched")
TIMING = Timing()


@dataclass(frozen=True)
class Row:
    """One line of the table, under one delay model."""

    scheme: str
    mode: str
    work: float
    mean: float
    p99: float
    iterations: float
    time: float
    dollars: float


def delay_models(folder: object, small: bool) -> dict[str, DelayModel]:
    """measured, if there is a folder, and the shipped models."""
    models: dict[str, DelayModel] = {}
    profiles = {} if small else replay.measured(folder)  # type: ignore[arg-type]
    if profiles:
        models["measured"] = pooled(profiles)
    models["lambda-rare-tail"] = make_delays("lambda-rare-tail")
    models["exponential 1 s"] = make_delays("exponential")
    return models


def pooled(profiles: dict[str, replay.Times], rounds: int = 200) -> DelayModel:
    """The same number of rounds of every profile, scaled so that its undelayed workers take the
    task's time. That is the 20 % quantile of a round: in two profiles up to 15 % of the workers are
    six times faster than the others, and cannot have done the work."""
    rng = np.random.default_rng(0)
    tables = []
    for times in profiles.values():
        undelayed = np.quantile(times, 0.2, axis=1, keepdims=True)
        scaled = np.maximum(times, undelayed) * (TIMING.task / float(np.median(undelayed)))
        tables.append(scaled[rng.integers(len(times), size=rounds)])
    return from_table(np.concatenate(tables), name="measured")


def schemes(delays: DelayModel, rounds: int) -> dict[str, Scheme]:
    """All of them, codes with the number of data blocks that suits the delays."""
    made = [uncoded(WORKERS), relaunched(WORKERS)]
    made += [scheduled(name, WORKERS, LOAD) for name in SCHEDULES]
    for label, code, messages in (
        ("polar", "polar", 1),
        ("hadamard", "hadamard", 1),
        ("sub-tasks r=4", "hadamard", 4),
        ("sub-tasks r=8", "hadamard", 8),
    ):
        first = coded(label, WORKERS, data_blocks=16, messages=messages, code=code)
        made.append(best_data_blocks(first, delays, TIMING, rounds=rounds))
    return {scheme.name: scheme for scheme in made}


def iteration(scheme: Scheme, delays: DelayModel, products: int) -> tuple[float, float, float]:
    """(mean, p99, mean dollars) of an exact product."""
    matrix = SimulatedMatrix(np.eye(WORKERS), scheme, delays, timing=TIMING, seed=1)
    found = [matrix.multiply(np.ones(WORKERS)) for _ in range(products)]
    seconds = np.array([result.seconds for result in found])
    dollars = float(np.mean([result.cost for result in found]))
    return float(seconds.mean()), float(np.quantile(seconds, 0.99)), dollars


def measure(problem: Problem, delays: DelayModel, small: bool) -> list[Row]:
    """The table of one delay model."""
    seeds = range(1 if small else 5)
    products = 100 if small else 2000
    every = schemes(delays, 40 if small else 400)
    steps = train(problem, every["hadamard"], delays, TIMING).to_target or 0
    line = train(problem, every["hadamard"], delays, TIMING, mode="conjugate").to_target or 0
    rows, exact = [], {}
    for name, scheme in every.items():
        mean, p99, dollars = exact[name] = iteration(scheme, delays, products)
        time, bill = mean * (steps + 1), dollars * (steps + 1)
        rows.append(Row(name, "exact", scheme.work, mean, p99, steps, time, bill))
    partial = [every["no coding"]]
    for tolerance in TOLERANCES[:1] if small else TOLERANCES:
        for scheme in [*partial, *(every[name] for name in PARTIAL)]:
            if scheme.name == "searched":
                scheme = scheduled("searched", WORKERS, LOAD, tolerance)
            mode = f"partial {tolerance:.0%}"
            rows.append(trained(problem, scheme, delays, mode, seeds, tolerance))
    for name in ("polar", "hadamard", "sub-tasks r=4", "sub-tasks r=8"):
        rows.append(trained(problem, every[name], delays, "anytime", seeds))
    fastest = min(exact, key=lambda name: exact[name][0])
    for name in dict.fromkeys(("no coding", "hadamard", fastest)):
        mean, p99, dollars = exact[name]
        products = line + 1  # one for each iteration, and the first gradient
        work = every[name].work
        bill = dollars * products
        rows.append(Row(name, "conjugate", work, mean, p99, line, mean * products, bill))
    return rows


def trained(
    problem: Problem,
    scheme: Scheme,
    delays: DelayModel,
    mode: str,
    seeds: range,
    tolerance: float = 0.0,
) -> Row:
    """Mean over trainings, each to its own target."""
    kind = mode.split()[0]
    found, times, bills, counts = [], [], [], []
    for seed in seeds:
        run = train(problem, scheme, delays, TIMING, mode=kind, tolerance=tolerance, seed=seed)
        last = run.to_target
        if last is None:
            times.append(np.inf)
            bills.append(np.inf)
            counts.append(np.inf)
            continue
        found.append(np.diff(run.seconds[: last + 1]))
        times.append(run.seconds[last])
        bills.append(run.dollars[last])
        counts.append(last)
    each = np.concatenate(found) if found else np.array([np.inf])
    return Row(
        scheme.name,
        mode,
        scheme.work,
        float(each.mean()),
        float(np.quantile(each, 0.99)),
        float(np.mean(counts)),
        float(np.mean(times)),
        float(np.mean(bills)),
    )


def text(tables: dict[str, list[Row]]) -> str:
    """One table: a line for each scheme and mode, four columns for each delay model."""
    head = f"{'scheme':<15}{'mode':<13}{'work':>5}"
    for name in tables:
        head += f" | {name:^38}"
    under = " " * 33
    for _ in tables:
        under += f" | {'mean':>6}{'p99':>7}{'steps':>6}{'time':>8}{'dollars':>10} "
    lines = [head, under]
    keys: dict[tuple[str, str], None] = {}
    for rows in tables.values():
        keys |= dict.fromkeys((row.scheme, row.mode) for row in rows)
    for key in keys:
        cells, work = "", ""
        for rows in tables.values():
            row = next((row for row in rows if (row.scheme, row.mode) == key), None)
            if row is None:
                cells += " | " + " " * 38
                continue
            work = work or f"{row.work:5.2f}"
            cells += f" | {row.mean:6.2f}{row.p99:7.2f}{row.iterations:6.0f}"
            cells += f"{row.time:8.0f}{row.dollars:10.4f} "
        lines.append(f"{key[0]:<15}{key[1]:<13}{work:>5}{cells}")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Print the table and write benchmarks/results/training.json."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    replay.add_options(parser)
    parser.add_argument("--condition", type=float, default=100.0, help="of W")
    options = parser.parse_args(arguments)
    models = delay_models(options.data, options.small)
    if "measured" not in models:
        print(replay.why_skipped(options.data))
    problem = Problem.make(10.0 if options.small else options.condition)
    tables = {name: measure(problem, delays, options.small) for name, delays in models.items()}
    print(text(tables))
    rows = {name: [vars(row) for row in table] for name, table in tables.items()}
    path = save("training", {"small": options.small, "tables": rows})
    print(f"written to {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
