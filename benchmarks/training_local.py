"""Gradient descent on the local stack with replayed delays: wall time to the same loss.

Least squares by W = X^T X: one product an iteration, on 20 workers, with a fixed step and exact
products, so that all schemes make the same iterations and differ in time alone. The delays of
iteration t are row t for every scheme, each of which is trained in a session of its own. Target:
the best coded scheme takes at most 0.6 of the time of no coding.

    python -m benchmarks.training_local [--data FOLDER] [--small] [--rounds 20] [--scale 1.0]

FOLDER (or POLARLAMBDA_DELAYS) holds the measured profiles, of which short-sydney-rare-long-tail is
replayed; without it, and with --small, rounds come from the model lambda-rare-tail that the project
ships. A training of T iterations meets the first T rounds, again from the first when they run out.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks.harness import Ratio, WrongResult, save, table
from benchmarks.subtasks_local import PROFILE
from benchmarks.training_problem import Problem
from polarcodes.delays import from_table, make_delays
from polarlambda import CodedMatrix, encode
from polarlambda.local.stack import LocalStack
from polarlambda.training.advance import FixedStep
from polarlambda.training.gram import GramGradient
from polarlambda.training.iterate import Iterate
from polarlambda.training.loop import Descent
from polarlambda.training.products import Product
from polarlambda.training.stopping import Stop

WORKERS = 20
TARGET = 0.6
CONDITION, GOAL = 4.0, 1e-3
MOST_ITERATIONS = 200


@dataclass(frozen=True)
class Scheme:
    """How W is encoded, and how its products are served."""

    name: str
    mode: Literal["invoke", "resident"]
    options: dict[str, Any]

    @property
    def coded(self) -> bool:
        """Whether any answer may be missing."""
        return self.options["code"] != "uncoded"


UNCODED = {"code": "uncoded"}
HADAMARD = {"code": "hadamard", "data_blocks": 16}
SUBTASKS = {"code": "hadamard", "subtasks": 4, "data_blocks": 12}
SCHEMES = (
    Scheme("uncoded", "invoke", UNCODED),
    Scheme("uncoded", "resident", UNCODED),
    Scheme("hadamard 16/20", "invoke", HADAMARD),
    Scheme("hadamard 16/20", "resident", HADAMARD),
    Scheme("hadamard 48/80, r = 4", "invoke", SUBTASKS),
    Scheme("hadamard 48/80, r = 4", "resident", SUBTASKS),
)


def delays(profile: Path | None, count: int) -> np.ndarray:
    """(count, 20) seconds: measured rounds, 20 of their workers drawn anew, or modelled ones."""
    rng = np.random.default_rng(0)
    if profile is None:
        return make_delays("lambda-rare-tail").sample(rng, count, WORKERS)
    excess = from_table(np.loadtxt(profile, delimiter=",")).excess
    rounds = [excess[t % len(excess)] for t in range(count)]
    return np.array([each[rng.permutation(len(each))[:WORKERS]] for each in rounds])


def train(
    problem: Problem, stack: LocalStack, scheme: Scheme, rounds: Path | None
) -> list[Iterate]:
    """The iterates of one training, of which the first one's product is a warm-up before it."""
    seen: list[Iterate] = []
    stack.set_chaos()
    with (
        CodedMatrix.open(name_of(scheme)) as matrix,
        matrix.session(mode=scheme.mode) as session,
    ):
        session.multiply(np.ones((matrix.shape[1], 1)))  # cold starts, and residents' blocks
        if rounds is not None:
            stack.set_chaos(delays=rounds)
        source = GramGradient(Product(session), problem.moments, problem.objective)
        stop = Stop(loss=problem.target(GOAL), iterations=MOST_ITERATIONS)
        ending = Descent(source, FixedStep(1.0), stop).run(seen.append)
    stack.drain()
    if ending.state != "converged" or problem.excess(ending.at.theta) > 1.01 * GOAL:
        raise WrongResult(f"{scheme.name}, {scheme.mode}: {ending.state}, {ending.message}")
    return seen


def name_of(scheme: Scheme) -> str:
    """The matrix of a scheme, the same for both modes."""
    return scheme.name.split(",")[0].replace(" ", "-").replace("/", "-")


def measure(
    problem: Problem, schemes: tuple[Scheme, ...], rounds: np.ndarray
) -> list[dict[str, Any]]:
    """Seconds, dollars and iterations of each scheme, with delays and without."""
    found = []
    before = dict(os.environ)
    with LocalStack(build="stale") as stack, tempfile.TemporaryDirectory() as folder:
        os.environ.update(stack.environment)  # the product finds this stack as it finds AWS
        path = Path(folder) / "rounds.csv"
        # The service takes the row's minimum off: an extra, unused 0 keeps the values.
        np.savetxt(path, np.column_stack([rounds, np.zeros(len(rounds))]), delimiter=",")
        try:
            for scheme in schemes:
                if scheme.mode == "invoke":
                    encode(problem.gram, name_of(scheme), workers=WORKERS, **scheme.options)
            stack.warm("WorkerFunction", WORKERS)
            for scheme in schemes:
                calm, delayed = (train(problem, stack, scheme, each) for each in (None, path))
                last = delayed[-1]
                found.append(
                    {
                        "scheme": scheme.name,
                        "mode": scheme.mode,
                        "coded": scheme.coded,
                        "iterations": last.iteration,
                        "loss": last.loss,
                        "undelayed_seconds": calm[-1].seconds,
                        "seconds": last.seconds,
                        "dollars": last.dollars,
                    }
                )
        finally:
            os.environ.clear()
            os.environ.update(before)
    return found


def show(found: list[dict[str, Any]], source: str, scale: float) -> Ratio:
    """The table of schemes, and the best coded one over no coding."""
    print(f"{WORKERS} workers, delays of {source} times {scale:g}, to {GOAL:g} of the first excess")
    print(
        f"{'scheme':>22}{'mode':>10}{'iterations':>12}{'loss':>10}{'undelayed s':>13}"
        f"{'seconds':>9}{'s/iteration':>13}"
    )
    for row in found:
        print(
            f"{row['scheme']:>22}{row['mode']:>10}{row['iterations']:>12}{row['loss']:>10.5f}"
            f"{row['undelayed_seconds']:>13.1f}{row['seconds']:>9.1f}"
            f"{row['seconds'] / row['iterations']:>13.2f}"
        )
    uncoded = next(row for row in found if not row["coded"] and row["mode"] == "invoke")
    best = min((row for row in found if row["coded"]), key=lambda row: row["seconds"])
    name = f"{best['scheme']}, {best['mode']} / uncoded, invoke"
    ratio = best["seconds"] / uncoded["seconds"]
    return Ratio(name, ratio, best["seconds"], uncoded["seconds"], "s", TARGET)


def main(arguments: list[str]) -> int:
    """Print the table and write benchmarks/results/training_local.json."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=os.environ.get("POLARLAMBDA_DELAYS"))
    parser.add_argument("--small", action="store_true", help="2 schemes, a few iterations")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--scale", type=float, default=1.0)
    options = parser.parse_args(arguments)
    profile = Path(options.data or ".") / PROFILE
    modelled = options.small or not profile.is_file()
    source = "the model lambda-rare-tail" if modelled else PROFILE
    rounds = delays(None if modelled else profile, options.rounds) * options.scale
    problem = Problem.make(1.5 if options.small else CONDITION, features=240)
    try:
        found = measure(problem, (SCHEMES[0], SCHEMES[2]) if options.small else SCHEMES, rounds)
    except WrongResult as error:
        print(f"WRONG RESULT: {error}")
        return 1
    ratio = show(found, source, options.scale)
    print(table([ratio]))
    results = {"source": source, "scale": options.scale, "schemes": found, "ratio": ratio.ratio}
    print(f"written to {save('training_local', results | {'small': options.small})}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
