"""``polarlambda optimize``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polarlambda.cli.errors import EXIT_MET, EXIT_NOT_REACHED
from polarlambda.cli.options import json_option, stack_option
from polarlambda.cli.output import check_output, echo_table, to_json
from polarlambda.cli.progress import Progress, make_progress
from polarlambda.errors import BadInput

if TYPE_CHECKING:
    from polarlambda.optimization import OptimizationResult
    from polarlambda.optimization.state import Figures

objective_stack_option = click.option(
    "--objective-stack",
    metavar="NAME",
    help="The objective's own stack. Without it: POLARLAMBDA_OBJECTIVE.",
)
theta_option = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="THETA.npy",
    help="Where to write the best theta.",
)
picture_option = click.option(
    "--picture",
    type=click.Path(path_type=Path),
    metavar="FILE.png",
    help="Where to draw the learning curve (needs matplotlib).",
)


@click.command()
@click.argument("objective", metavar="MODULE:FUNCTION")
@click.option(
    "--start",
    required=True,
    metavar="THETA",
    help="Where to begin: an .npy file, numbers such as 0,0,1.5, or zeros:P.",
)
@theta_option
@click.option("--maximize/--minimize", default=False, show_default=True, help="Up or down.")
@click.option(
    "--bounds", metavar="LOW,HIGH", help="A box for all parameters, or an .npy of (p, 2)."
)
@click.option("--scale", metavar="SIZE", help="Size of a parameter: a number, or an .npy of (p,).")
@click.option("--workers", type=int, metavar="N", help="Pairs of points in an iteration.")
@click.option("--redundancy", type=float, help="Share that may be missing; decides N.  [0.25]")
@click.option("--block", type=int, metavar="K", help="Parameters that an iteration moves.  [all]")
@click.option(
    "--directions", metavar="KIND", help="coded, structured, gaussian, finite-differences.  [coded]"
)
@click.option("--code", metavar="CODE", help="Of coded directions: hadamard, polar.  [hadamard]")
@click.option("--sigma", type=float, help="Size of the perturbations, in scales.  [0.05]")
@click.option("--optimizer", metavar="NAME", help="adam or sgd.  [adam]")
@click.option("--rate", type=float, help="Learning rate, in scales.  [0.05]")
@click.option("--momentum", type=float, help="Of sgd.  [0.9]")
@click.option("--control", metavar="NAME", help="Of the step's size: none or trust.  [none]")
@click.option(
    "--wait", metavar="CONDITION", help="decodable, all, share=0.8, seconds=5.  [decodable]"
)
@click.option(
    "--estimator", metavar="NAME", help="auto, least-squares, unbiased or decode.  [auto]"
)
@click.option("--seeds", metavar="KIND", help="fresh for every pair, or common.  [fresh]")
@click.option("--seed", type=int, help="Of everything that is drawn.  [0]")
@click.option("--iterations", type=int, help="At most so many.  [100]")
@click.option("--evaluations", type=int, help="At most so many values of the objective.")
@click.option("--seconds", type=float, help="No iteration begins after so much time.")
@click.option("--dollars", type=float, help="No iteration begins that would cost more in all.")
@click.option("--target", type=float, help="A score that is good enough.")
@click.option(
    "--final", type=int, metavar="K", help="Evaluations of the result on fresh seeds.  [0]"
)
@click.option(
    "--argument",
    "arguments",
    multiple=True,
    metavar="NAME=VALUE",
    help="A keyword argument of the objective, as JSON or text; may be repeated.",
)
@click.option(
    "--plan",
    "evaluation_seconds",
    type=float,
    metavar="SECONDS",
    help="Evaluate nothing: say what N pays where one value takes so long.",
)
@click.option(
    "--delays", default="lambda-rare-tail", show_default=True, help="Delay model of --plan."
)
@picture_option
@json_option
@stack_option
@objective_stack_option
def optimize(
    objective: str,
    start: str,
    output: Path | None,
    maximize: bool,
    bounds: str | None,
    scale: str | None,
    arguments: tuple[str, ...],
    evaluation_seconds: float | None,
    delays: str,
    picture: Path | None,
    as_json: bool,
    stack: str | None,
    objective_stack: str | None,
    **given: Any,
) -> None:
    """Minimise or maximise MODULE:FUNCTION, which can only be evaluated.

    The function (theta, seed) -> float runs on Lambda, built by scripts/new_objective.py. Exit code
    3 says that the target was not reached, or that every evaluation failed; the best theta so far
    is at -o.
    """
    from polarlambda.optimization import Options
    from polarlambda.optimization import optimize as run

    check_output(output)
    check_output(picture)
    options = Options(
        maximize=maximize,
        arguments=dict(map(argument, arguments)),
        **{name: value for name, value in given.items() if value is not None},
    )
    theta = numbers("start", start)
    if evaluation_seconds is not None:
        show_plan(options.block_size(len(theta)), evaluation_seconds, delays, as_json)
        return
    with make_progress(quiet=as_json) as progress:
        result = run(
            objective,
            theta,
            bounds=None if bounds is None else numbers("bounds", bounds),
            scale=None if scale is None else numbers("scale", scale),
            options=options,
            objective_stack=objective_stack,
            stack=stack,
            on_begin=lambda name: progress.note(f"optimization {name}"),
            on_iteration=shown(progress, options.iterations),
        )
    finish(result, output, picture, as_json)


def show_plan(parameters: int, evaluation_seconds: float, delays: str, as_json: bool) -> None:
    """Print what an iteration takes and costs by the number of directions."""
    from coordinator.prices import load_prices
    from polarlambda.optimization.population import plan_population
    from polarlambda.planning import delay_model

    rows = plan_population(parameters, evaluation_seconds, delay_model(delays), load_prices())
    if as_json:
        click.echo(to_json([row.to_json() for row in rows]))
        return
    click.echo(f"an iteration that needs {parameters} of N values, {delays}:")
    echo_table(
        ("N", "may be missing", "seconds", "99 %", "dollars", "noise", ""),
        [
            (
                str(row.workers),
                f"{row.redundancy:.0%}",
                f"{row.seconds:.2f}",
                f"{row.seconds_p99:.2f}",
                f"{row.dollars:.5f}",
                f"{row.noise:.2f}",
                "least seconds times dollars" if row.chosen else "",
            )
            for row in rows
        ],
    )


def numbers(name: str, text: str) -> Any:
    """The array of an .npy file, or numbers with commas between them. Raises `BadInput`."""
    from polarlambda.vectors import load_npy

    if text.endswith(".npy"):
        return load_npy(f"--{name}", text)
    kind, _, count = text.partition(":")
    if kind == "zeros" and count.isdecimal():
        return [0.0] * int(count)
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError as error:
        raise BadInput(
            f"--{name} must be an .npy file, numbers such as 0,0,1.5, or zeros:P, got {text!r}"
        ) from error
    return found[0] if name == "scale" and len(found) == 1 else found


def argument(text: str) -> tuple[str, Any]:
    """(name, value) of NAME=VALUE; the value is JSON where it is, else text. Raises `BadInput`."""
    name, separator, value = text.partition("=")
    if not (separator and name.isidentifier()):
        raise BadInput(f"--argument takes NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def shown(progress: Progress, iterations: int) -> Any:
    """What shows an iteration's figures."""

    def show(figures: Figures) -> None:
        lost = figures.failures + figures.silent
        text = (
            f"iteration {figures.iteration}: score {figures.score:.6g}, best "
            f"{figures.best_score:.6g}, {figures.arrivals} values"
            + (f", {figures.failures} failed" if figures.failures else "")
            + (f", {figures.silent} not waited for" if figures.silent else "")
            + ("" if figures.exact or not lost else ", gradient estimated")
        )
        if figures.failures and figures.failure:
            text += f" ({figures.failure})"
        progress.update(figures.iteration, iterations, text)

    return show


def finish(
    result: OptimizationResult, output: Path | None, picture: Path | None, as_json: bool
) -> None:
    """Write theta and the picture, say how it ended, and leave with its exit code."""
    if output is not None:
        from polarlambda.download import write_product

        write_product(output, result.theta)
    if picture is not None:
        from polarlambda.optimization.picture import draw

        draw(picture, [(result.objective, result.history)], maximize=result.maximize)
    if as_json:
        click.echo(to_json(result.to_json(theta_path=str(output) if output else None)))
    else:
        click.echo(str(result))
        if output is not None:
            click.echo(f"theta in {output}")
    if result.met:
        sys.exit(EXIT_MET)
    click.echo(f"polarlambda: {result.state}: {result.message}", err=True)
    if result.state in ("stopped", "cancelled"):
        click.echo(f"go on with: polarlambda optimizations resume {result.optimization}", err=True)
    sys.exit(EXIT_NOT_REACHED)
