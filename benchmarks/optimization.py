"""Evaluations and simulated time to a target: coded directions against waiting for all, and
against dropping what comes late.

    python -m benchmarks.optimization [--small] [--data FOLDER]

p = 96 parameters, N = 128 workers, each of which evaluates a pair of points. Worker times are
measured profiles (rounds replayed, workers drawn from them) or the shipped models. An iteration
ends at the p-th value that determines the gradient (coded), at the last of 96 (no redundancy) or
128 (all), or at the 96th of 128 whatever they determine (drop late). The score must come within 5 %
of the way from where it begins to the least value, judged without noise. Structured directions are
rows of H D, as the one-round code has them; their estimator is that of evolution strategies, or the
code's. Adam, the learning rate of each scheme the best of four. Noise: the standard deviation of f
relative to its spread over the points of the first iteration. `-`: not reached in the iterations
allowed.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from benchmarks.directions import Smooth
from benchmarks.harness import save
from benchmarks.replay import TASK_SECONDS, Times, add_options, measured, modelled, why_skipped
from polarcodes.directions import make_directions
from polarlambda.optimization.blocks import derived_seed
from polarlambda.optimization.steps import Stepper

P, N = 96, 128
SIGMA = 0.05
NOISES = (0.0, 0.1, 0.5)
RATES = (0.03, 0.1, 0.2, 0.4)


@dataclass(frozen=True)
class Scheme:
    """Which directions, how many workers, and how many values an iteration waits for (None: until
    they determine the gradient)."""

    kind: str
    workers: int
    wait: int | None
    estimator: str = "auto"


SCHEMES = {
    "coded, wait for p": Scheme("coded", N, None),
    "structured, wait for all 96": Scheme("structured", P, P),
    "structured, wait for all 128": Scheme("structured", N, N),
    "structured, drop late": Scheme("structured", N, P, "unbiased"),
    "structured, drop late, ridge": Scheme("structured", N, P),
    "Gaussian, wait for all 128": Scheme("gaussian", N, N, "unbiased"),
    "Gaussian, drop late": Scheme("gaussian", N, P, "unbiased"),
    "finite differences, all 96": Scheme("finite-differences", P, P),
}


def problem() -> tuple[Smooth, np.ndarray]:
    """A quadratic of condition number 30 with its least value 0 at 0, and where to begin."""
    rng = np.random.default_rng(1)
    turned, _ = np.linalg.qr(rng.standard_normal((P, P)))
    curvature = turned * np.geomspace(1, 30, P) @ turned.T
    return (
        Smooth(lambda x: np.einsum("ij,jk,ik->i", x, curvature, x) / 2, lambda x: curvature @ x),
        rng.standard_normal(P),
    )


def run(
    scheme: Scheme, times: Times, noise: float, rate: float, seed: int, iterations: int
) -> tuple[int, float] | None:
    """(iterations, seconds) until the target; None if it was not reached."""
    f, theta = problem()
    rng = np.random.default_rng([seed, 7])
    stepper = Stepper("adam", rate, 0.9)
    memory, places = stepper.start(P), np.arange(P)
    goal = 0.05 * float(f.value(theta[None])[0])
    spread, seconds = None, 0.0
    for iteration in range(iterations):
        directions = make_directions(
            scheme.kind,
            parameters=P,
            count=scheme.workers,
            seed=derived_seed(seed, "directions", iteration),
        )
        row = times[rng.integers(times.shape[0])]
        mine = rng.choice(row, scheme.workers, replace=row.size < scheme.workers)
        order = np.argsort(mine, kind="stable")
        wait = scheme.wait or P
        while scheme.wait is None and not directions.decodable(order[:wait]):
            wait += 1
        S = order[:wait]
        seconds += float(mine[order[wait - 1]])
        rows = directions.vectors(S)
        plus, minus = f.value(theta + SIGMA * rows), f.value(theta - SIGMA * rows)
        spread = spread or float(np.std(np.concatenate([plus, minus])))
        drawn = noise * spread * rng.standard_normal((2, wait))
        slopes = (plus + drawn[0] - minus - drawn[1]) / (2 * SIGMA)
        found = directions.gradient(S, slopes, estimator=scheme.estimator)
        step, memory = stepper.step(memory, found.value, places)
        theta = theta + step
        if f.value(theta[None])[0] <= goal:
            return iteration + 1, seconds
    return None


def best(
    scheme: Scheme,
    times: Times,
    noise: float,
    seeds: range,
    iterations: int,
    rates: tuple[float, ...] = RATES,
) -> dict[str, float] | None:
    """Mean iterations and seconds with the learning rate that needs least time, over seeds."""
    found = []
    for rate in rates:
        runs = [run(scheme, times, noise, rate, seed, iterations) for seed in seeds]
        if all(each is not None for each in runs):
            taken = np.array(runs, dtype=float).mean(axis=0)
            found.append((taken[1], taken[0], rate))
    if not found:
        return None
    seconds, needed, rate = min(found)
    return {
        "rate": rate,
        "iterations": needed,
        "evaluations": 2 * scheme.workers * needed,
        "seconds": seconds,
    }


def main() -> int:
    """Print the tables and write the JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.optimization",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_options(parser)
    options = parser.parse_args()
    seeds = range(1 if options.small else 5)
    iterations = 40 if options.small else 250
    rates = RATES[-1:] if options.small else RATES
    noises = NOISES[:1] if options.small else NOISES
    profiles = measured(options.data)
    if not profiles:
        print(why_skipped(options.data))
    pooled = {"measured (8 profiles)": relative(profiles)} if profiles else {}
    sources = pooled | modelled(50 if options.small else 200)
    rows = []
    for source, times in sources.items():
        for noise in noises:
            print(f"\n{source}, noise {noise:g}")
            print(f"  {'':<30}{'rate':>6}{'iterations':>12}{'evaluations':>13}{'seconds':>9}")
            for name, scheme in SCHEMES.items():
                taken = best(scheme, times, noise, seeds, iterations, rates)
                rows.append({"times": source, "noise": noise, "scheme": name, "taken": taken})
                if taken is None:
                    print(f"  {name:<30}{'-':>6}")
                    continue
                print(
                    f"  {name:<30}{taken['rate']:>6g}{taken['iterations']:>12.1f}"
                    f"{taken['evaluations']:>13,.0f}{taken['seconds']:>9.1f}"
                )
    print(f"written to {save('optimization', {'small': options.small, 'rows': rows})}")
    return 0


def relative(profiles: dict[str, Times]) -> Times:
    """All measured rounds with a median task of `TASK_SECONDS`, one below the other."""
    scaled = [times * (TASK_SECONDS / float(np.median(times))) for times in profiles.values()]
    return np.concatenate(scaled)


if __name__ == "__main__":
    raise SystemExit(main())
