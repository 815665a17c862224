"""Run an example on the local stack, coded and as plain evolution strategies, and compare.

    python -m examples.compare cartpole [--small] [--picture FILE]

The others are pendulum, kernel_ridge and attack. Both have the same delays (a seeded model) and as
many workers. The baseline's directions are Gaussian, and an iteration waits for all of them. The
table has the score at equal evaluations, and what the baseline had when the coded run had ended.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from polarlambda.local import LocalStack
from polarlambda.optimization import OptimizationResult, Options, optimize
from polarlambda.optimization.picture import draw
from polarlambda.optimization.state import Figures

BASELINE = {"directions": "gaussian", "wait": "all", "estimator": "unbiased"}


@dataclass(frozen=True)
class Example:
    """How an example is run. `iterations` are those of the coded run."""

    workers: int
    iterations: int
    options: dict[str, Any] = field(default_factory=dict)
    bounds: Any = None
    final: int = 50
    images: int = 0


EXAMPLES = {
    "cartpole": Example(8, 20, {"maximize": True}, final=100),
    "pendulum": Example(
        44, 80, {"maximize": True, "sigma": 0.2, "rate": 0.2, "seeds": "common"}, final=50
    ),
    "kernel_ridge": Example(15, 20, {"sigma": 0.2, "rate": 0.2, "seeds": "common"}, final=30),
    "attack": Example(
        80, 8, {"sigma": 0.02, "rate": 0.1, "target": 0.0}, [-3, 3], final=0, images=12
    ),
}


def main() -> None:
    """Run both, print the table, draw the picture."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("example", choices=EXAMPLES)
    parser.add_argument("--small", action="store_true", help="less than a minute: does it run?")
    parser.add_argument("--iterations", type=int, help="of the coded run, else the example's own")
    parser.add_argument("--images", type=int, help="of the attack, else twelve")
    parser.add_argument("--picture", type=Path, help="learning curves, or the images")
    options = parser.parse_args()
    example = EXAMPLES[options.example]
    with stack_for(options.example) as stack:
        if example.images:
            images = 2 if options.small else options.images or example.images
            compare_attacks(stack, example, images, options.picture)
        else:
            iterations = 2 if options.small else options.iterations or example.iterations
            compare(stack, options.example, example, iterations, options.picture)


@contextmanager
def stack_for(name: str) -> Iterator[LocalStack]:
    """A local stack with the example's function; this process's variables point to it."""
    root = Path(__file__).resolve().parents[1]
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / name.replace("_", "-")
        script = root / "scripts" / "new_objective.py"
        subprocess.run([sys.executable, script, folder, "--example", name], check=True)
        parameters = {"ObjectiveConcurrency": "16", "ObjectiveMemory": "1024"}
        with LocalStack(objective=folder, parameters=parameters, build="stale") as stack:
            os.environ.update(stack.environment)
            try:
                stack.warm("ObjectiveFunction", 16)
                yield stack
            finally:
                os.environ.clear()
                os.environ.update(before)


def run(stack: LocalStack, name: str, example: Example, **given: Any) -> OptimizationResult:
    """One optimisation under the delays, which begin anew."""
    stack.set_chaos(model="lambda-rare-tail", seed=1)
    module = importlib.import_module(f"examples.{name}")
    start = [0.0] * int(module.START.removeprefix("zeros:"))
    result = optimize(
        f"{name}:{module.OBJECTIVE}",
        start,
        bounds=example.bounds,
        options=Options(**{"workers": example.workers, **example.options, **given}),
    )
    stack.set_chaos()
    stack.drain()
    return result


def compare(
    stack: LocalStack, name: str, example: Example, iterations: int, picture: Path | None
) -> None:
    """Coded and baseline to the same number of evaluations."""
    coded = run(stack, name, example, iterations=iterations, final=example.final)
    budget = max(coded.figures.evaluations, 2 * example.workers)
    plain = run(
        stack,
        name,
        example,
        **BASELINE,
        iterations=10 * iterations,
        evaluations=budget,
        final=example.final,
    )
    then = at(plain.history, coded.figures.seconds)
    print(f"\n{name}: {example.workers} pairs of points an iteration, the same delays for both")
    row = "{:<34}{:>14}{:>12}{:>20}"
    print(row.format("", "evaluations", "seconds", "score"))
    for title, result in (("coded, any p values", coded), ("Gaussian, wait for all", plain)):
        last, final = result.figures, result.final
        assert final is not None
        score = f"{final.mean:.4g} ± {final.error:.2g}"
        print(row.format(title, f"{last.evaluations:,}", f"{last.seconds:.1f}", score))
    print(
        row.format(
            "Gaussian, when coded had ended",
            f"{then.evaluations:,}",
            f"{then.seconds:.1f}",
            "none yet" if then.score is None else f"{then.score:.4g}",
        )
    )
    if picture is not None:
        curves = [("coded, any p values", coded.history), ("Gaussian, all", plain.history)]
        draw(picture, curves, maximize=coded.maximize, title=name)


def at(history: Sequence[Figures], seconds: float) -> Figures:
    """The figures of the last iteration that had ended by then."""
    return max(
        (figures for figures in history if figures.seconds <= seconds),
        key=lambda figures: figures.iteration,
        default=Figures(),
    )


def compare_attacks(stack: LocalStack, example: Example, images: int, picture: Path | None) -> None:
    """Attack the first images with each method, at most so many iterations an image."""
    from examples.attack_picture import show

    found: dict[str, list[OptimizationResult]] = {"coded, any 64 values": [], "Gaussian, all": []}
    for image in range(images):
        for (_, results), given in zip(found.items(), ({}, BASELINE), strict=True):
            results.append(
                run(
                    stack,
                    "attack",
                    example,
                    iterations=example.iterations,
                    arguments={"image": image},
                    **given,
                )
            )
    print(f"\nattack: {images} images, at most {example.iterations} iterations each, box ±3 of 16")
    row = "{:<26}{:>12}{:>14}{:>12}"
    print(row.format("", "fooled", "evaluations", "seconds"))
    for title, results in found.items():
        fooled = sum(result.state == "target" for result in results)
        evaluations = sum(result.figures.evaluations for result in results)
        seconds = sum(result.figures.seconds for result in results)
        share = f"{fooled} of {images}"
        print(row.format(title, share, f"{evaluations:,}", f"{seconds:.1f}"))
    slower = found["Gaussian, all"]
    limit = max(result.figures.seconds for result in found["coded, any 64 values"])
    early = [r.state == "target" and r.figures.seconds <= limit for r in slower]
    print(f"Gaussian within the coded method's longest time, {limit:.1f} s: {sum(early)}")
    if picture is not None:
        coded = found["coded, any 64 values"]
        show(picture, np.stack([result.theta for result in coded]), [r.history for r in coded])


if __name__ == "__main__":
    main()
