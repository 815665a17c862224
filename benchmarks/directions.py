"""Gradient error against the number of values that came, for every family of directions.

    python -m benchmarks.directions [--small]

Smooth test functions in p = 48 dimensions, N = 64 pairs of points, seeded directions and arrivals.
`formula` is the predicted relative rms error of the unbiased estimator, `unbiased` what was
measured, `ridge` the default estimator; `noise` columns repeat that with noise on every value: its
standard deviation is 0.3 of the spread of f over the points.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.harness import save
from polarcodes.directions import Directions, make_directions

PARAMETERS, PAIRS = 48, 64
SIGMA = 1e-3
FAMILIES = {
    "coded, Hadamard": ("coded", {"code": "hadamard"}, PAIRS),
    "coded, polar": ("coded", {"code": "polar"}, PAIRS),
    "structured": ("structured", {}, PAIRS),
    "Gaussian": ("gaussian", {}, PAIRS),
    "finite differences": ("finite-differences", {}, PARAMETERS),
}
Array = np.ndarray
Function = Callable[[Array], Array]


@dataclass(frozen=True)
class Smooth:
    """f on (m, p) points, and its gradient at a point."""

    value: Function
    gradient: Function


def functions(rng: np.random.Generator) -> dict[str, Smooth]:
    """A quadratic, Rosenbrock's valley, and a log-sum-exp."""
    weights = rng.uniform(0.1, 3, PARAMETERS)
    rows = rng.standard_normal((20, PARAMETERS))

    def valley(x: Array) -> Array:
        a, b = x[:, :-1], x[:, 1:]
        return (100 * (b - a**2) ** 2 + (1 - a) ** 2).sum(axis=1)

    def valley_gradient(x: Array) -> Array:
        found = np.zeros_like(x)
        inner = x[1:] - x[:-1] ** 2
        found[:-1] += -400 * x[:-1] * inner - 2 * (1 - x[:-1])
        found[1:] += 200 * inner
        return found

    def softest(x: Array) -> Array:
        return np.log(np.exp(x @ rows.T).sum(axis=1))

    def softest_gradient(x: Array) -> Array:
        weight = np.exp(rows @ x)
        return rows.T @ (weight / weight.sum())

    return {
        "quadratic": Smooth(lambda x: x**2 @ weights / 2, lambda x: weights * x),
        "valley": Smooth(valley, valley_gradient),
        "log-sum-exp": Smooth(softest, softest_gradient),
    }


def slopes(f: Smooth, theta: Array, rows: Array, noise: float, rng: np.random.Generator) -> Array:
    """Antithetic differences, with noise on each of the two values."""
    plus, minus = f.value(theta + SIGMA * rows), f.value(theta - SIGMA * rows)
    size = noise * float(np.std(plus - minus)) / np.sqrt(2)
    drawn = rng.standard_normal((2, rows.shape[0])) * size
    return (plus + drawn[0] - minus - drawn[1]) / (2 * SIGMA)


def measure(name: str, f: Smooth, draws: int, count: int, noise: float) -> dict[str, float]:
    """Relative rms errors over seeds, of `count` values in random order."""
    kind, options, pairs = FAMILIES[name]
    squares: dict[str, list[float]] = {"unbiased": [], "ridge": [], "least-squares": []}
    exact = 0
    made: Directions | None = None
    for seed in range(draws):
        rng = np.random.default_rng([seed, count])
        made = make_directions(kind, parameters=PARAMETERS, count=pairs, seed=seed, **options)
        theta = rng.standard_normal(PARAMETERS) / 2
        wanted = f.gradient(theta)
        S = rng.permutation(pairs)[:count]
        y = slopes(f, theta, made.vectors(S), noise, rng)
        for estimator, errors in squares.items():
            found = made.gradient(S, y, estimator=estimator)
            errors.append(float(np.sum((found.value - wanted) ** 2) / np.sum(wanted**2)))
        exact += made.decodable(S)
    assert made is not None
    rms = {estimator: float(np.sqrt(np.mean(errors))) for estimator, errors in squares.items()}
    return {**rms, "formula": made.predicted_error(count), "exact": exact / draws}


def main() -> int:
    """Print the tables and write the JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.directions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--small", action="store_true", help="a few seconds: does it still run?")
    small = parser.parse_args().small
    draws = 4 if small else 100
    counts = (24, 48, 64) if small else (8, 16, 32, 48, 50, 56, 64)
    tested = functions(np.random.default_rng(0))
    rows = []
    head = f"{'function':<12} {'directions':<19} {'values':>6} {'formula':>8} {'unbiased':>9}"
    head += f" {'ridge':>8} {'decodable':>10} {'noise .3: ridge':>17} {'least sq.':>10}"
    print(f"{head} {'unbiased':>9}")
    for title, f in tested.items():
        for name in FAMILIES:
            pairs = FAMILIES[name][2]
            for count in sorted({min(count, pairs) for count in counts}):
                clean = measure(name, f, draws, count, 0.0)
                noisy = measure(name, f, draws, count, 0.3)
                rows.append({"function": title, "directions": name, "values": count, **clean})
                rows[-1] |= {
                    "noisy " + key: noisy[key] for key in ("ridge", "least-squares", "unbiased")
                }
                print(
                    f"{title:<12} {name:<19} {count:>6} {clean['formula']:>8.2f} "
                    f"{clean['unbiased']:>9.2f} {clean['ridge']:>8.2g} "
                    f"{clean['exact']:>10.0%} {noisy['ridge']:>17.2f} "
                    f"{noisy['least-squares']:>10.2f} {noisy['unbiased']:>9.2f}"
                )
    path = save("directions", {"small": small, "draws": draws, "rows": rows})
    print(f"written to {path}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
