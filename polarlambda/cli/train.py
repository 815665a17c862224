"""``polarlambda train``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from polarlambda.cli.errors import EXIT_MET, EXIT_NOT_REACHED
from polarlambda.cli.options import json_option, stack_option
from polarlambda.cli.output import check_output, to_json
from polarlambda.cli.progress import Progress, make_progress
from polarlambda.errors import BadInput

if TYPE_CHECKING:
    from coordinator.events import Event
    from polarlambda.training.iterate import Iterate
    from polarlambda.training.trained import Trained

FILE = click.Path(path_type=Path)


class StepType(click.ParamType):
    """ "line", or a step's length."""

    name = "line or number"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The number, or "line" as it is."""
        return value if value == "line" else click.FLOAT.convert(value, param, ctx)


@click.command()
@click.argument("name", required=False)
@click.option(
    "--labels",
    type=FILE,
    metavar="Y.npy",
    help="Labels, one for each row of X; images have their own.",
)
@click.option(
    "--model",
    default="least-squares",
    show_default=True,
    metavar="MODEL",
    help="least-squares, ridge, logistic or multinomial.",
)
@click.option("--l2", type=float, default=0.0, metavar="L", help="Penalty (L / 2) ||w||^2.")
@click.option("--intercept/--no-intercept", default=True, help="Whether there is a bias.")
@click.option("--classes", type=int, metavar="K", help="Number of classes, to be checked.")
@click.option("-o", "--output", type=FILE, metavar="THETA.npy", help="Where theta goes.")
@click.option("--picture", type=FILE, metavar="FILE.png", help="Draw loss against time.")
@click.option("--csv", "table", type=FILE, metavar="FILE.csv", help="A line for every iteration.")
@click.option(
    "--step",
    type=StepType(),
    default="line",
    show_default=True,
    help="Search the best length of every step (costs no product), or a fixed one.",
)
@click.option(
    "--momentum",
    metavar="NAME",
    help="conjugate, heavy-ball or none; nesterov, heavy-ball or none with a fixed step.",
)
@click.option("--beta", type=float, default=0.9, show_default=True, help="Weight of a momentum.")
@click.option(
    "--tolerance",
    type=float,
    default=0.0,
    show_default=True,
    metavar="SHARE",
    help="Rows that may be missing from a gradient, for matrices with a schedule.",
)
@click.option(
    "--tighten",
    type=float,
    default=1.0,
    show_default=True,
    metavar="FACTOR",
    help="Of the tolerance, from one iteration to the next.",
)
@click.option(
    "--anytime",
    is_flag=True,
    help="Stop products at the error that their step can bear; for fixed steps.",
)
@click.option("--gradient-norm", type=float, metavar="R", help="Goal, relative to the first one.")
@click.option("--loss", type=float, metavar="F", help="Goal, a value of the objective.")
@click.option("--iterations", type=int, metavar="T", help="Limit.")
@click.option("--seconds", type=float, metavar="S", help="Limit.")
@click.option("--dollars", type=float, metavar="D", help="Limit.")
@click.option("--transpose", metavar="NAME", help="The encoded transpose; else found by digest.")
@click.option("--data", metavar="X.npy", help="X, for X^T y when NAME is a Gram matrix.")
@click.option("--deadline", type=float, metavar="SECONDS", help="Of each product.")
@click.option(
    "--mode",
    type=click.Choice(["auto", "resident", "invoke"]),
    default="auto",
    show_default=True,
    help="Workers that stay and keep their blocks, or are invoked for each product; auto: what is "
    "planned to be cheaper.",
)
@click.option("--resume", metavar="TRAINING", help="Go on with a training instead.")
@json_option
@stack_option
def train(
    name: str | None,
    labels: Path | None,
    output: Path | None,
    picture: Path | None,
    table: Path | None,
    resume: str | None,
    as_json: bool,
    stack: str | None,
    **options: Any,
) -> None:
    """Train a model on the encoded matrix NAME by gradient descent.

    NAME is X, whose transpose is encoded as well (encode --transpose), or X^T X (encode --gram).
    Every iteration leaves a checkpoint. Exit code 3 says that a goal was not reached; theta is at
    -o all the same.
    """
    from polarlambda.training.picture import check_picture
    from polarlambda.training.service import resume_training, train

    for path in (output, picture, table):
        check_output(path)
    if picture is not None:
        check_picture()
    with make_progress(quiet=as_json) as progress:
        show = Show(progress, options)
        listeners = {
            "on_start": show.start,
            "on_iterate": show.iterate,
            "on_event": show.event,
            "stack": stack,
        }
        if resume is not None:
            trained = resume_training(
                resume, name=name, labels=labels, stop=_stop(options), **listeners
            )
        elif name is None:
            raise BadInput("give NAME and --labels Y.npy, or --resume TRAINING")
        else:
            trained = train(name, labels, **options, **listeners)
    finish(trained, output, picture, table, as_json)


LIMITS = ("gradient_norm", "loss", "iterations", "seconds", "dollars")


def _stop(options: dict[str, Any]) -> dict[str, Any]:
    """Goals and limits; other options of a training that is resumed are those it began with."""
    context = click.get_current_context()
    for option in options:
        source = context.get_parameter_source(option)
        if option not in LIMITS and source is click.core.ParameterSource.COMMANDLINE:
            raise BadInput(
                f"--{option.replace('_', '-')} is what the training began with: only goals and "
                "limits can change when it is resumed"
            )
    return {limit: options[limit] for limit in LIMITS}


class Show:
    """Shows a training: its id, notes on the data, every iteration, and workers that fail."""

    def __init__(self, progress: Progress, options: dict[str, Any]) -> None:
        self._progress = progress
        self._options = options

    def start(self, training: str, notes: tuple[str, ...]) -> None:
        """For ``on_start``."""
        self._progress.note(f"training {training}")
        for note in notes:
            self._progress.note(f"note: {note}")

    def iterate(self, at: Iterate) -> None:
        """For ``on_iterate``."""
        text = (
            f"{at.seconds:6.1f} s  iteration {at.iteration}  loss {at.loss:.6g}  gradient "
            f"{at.norm / at.first_norm if at.first_norm else 0:.1e}  ${at.dollars:.5f}"
        )
        if not at.exact:
            text += f"  {at.recovered:.0%} of the rows" if at.recovered < 1 else ""
            text += f"  estimated, error {at.error:.0%}" if at.error else ""
        total = self._options["iterations"] or max(2 * at.iteration, 10)
        self._progress.update(min(at.iteration, total - 1), total, text)

    def event(self, event: Event) -> None:
        """For ``on_event``."""
        from coordinator import events

        match event:
            case events.Failed(worker=worker, kind=kind, message=message):
                self._progress.note(f"worker {worker} failed: {kind}: {message}")
            case events.Reinvoked(missing=missing):
                self._progress.note(f"{len(missing)} lost blocks are invoked once more")


def finish(
    trained: Trained, output: Path | None, picture: Path | None, table: Path | None, as_json: bool
) -> None:
    """Write theta, picture and table, say how it ended, and leave with its exit code."""
    from polarlambda.download import write_product
    from polarlambda.training.picture import draw_history, history_csv

    if output is not None:
        write_product(output, trained.theta)
    if table is not None:
        table.write_text(history_csv(trained.history))
    if picture is not None:
        draw_history(trained.history, picture, f"{trained.model}, training {trained.training}")
    if as_json:
        click.echo(to_json(trained.to_json(theta_path=str(output) if output else None)))
    else:
        click.echo(str(trained))
        for what, path in (("theta", output), ("picture", picture), ("history", table)):
            if path is not None:
                click.echo(f"{what} in {path}")
    if trained.met:
        sys.exit(EXIT_MET)
    click.echo(f"polarlambda: not reached: {trained.message}", err=True)
    if trained.state != "diverged":
        click.echo(f"go on with: polarlambda train --resume {trained.training}", err=True)
    sys.exit(EXIT_NOT_REACHED)
