"""``polarlambda trainings list | show | watch | delete``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from polarlambda.cli.options import json_option, stack_option
from polarlambda.cli.output import check_output, echo_table, to_json
from polarlambda.cli.progress import make_progress

if TYPE_CHECKING:
    from polarlambda.training.manage import Progress


@click.group()
def trainings() -> None:
    """The trainings in the bucket, and what became of them."""


@trainings.command("list")
@json_option
@stack_option
def list_command(as_json: bool, stack: str | None) -> None:
    """List the trainings, oldest first."""
    from polarlambda.training.manage import list_trainings

    found = list_trainings(stack=stack)
    if as_json:
        click.echo(to_json([progress.to_json() for progress in found]))
    elif not found:
        click.echo("no trainings: `polarlambda train NAME --labels Y.npy` starts one")
    else:
        echo_table(
            ("TRAINING", "MATRIX", "MODEL", "STATE", "ITERATION", "LOSS", "DOLLARS", "CREATED"),
            [
                (
                    progress.spec.training,
                    progress.spec.matrix,
                    progress.spec.model,
                    progress.state,
                    str(progress.last.iteration) if progress.last else "",
                    f"{progress.last.loss:.6g}" if progress.last else "",
                    f"{progress.last.dollars:.5f}" if progress.last else "",
                    progress.spec.created,
                )
                for progress in found
            ],
        )


@trainings.command()
@click.argument("training")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="THETA.npy",
    help="Write the parameters it ended with.",
)
@stack_option
def show(training: str, output: Path | None, stack: str | None) -> None:
    """Show all that is known of TRAINING, as JSON."""
    from polarlambda.training.manage import load_theta, show_training

    check_output(output)
    shown = show_training(training, stack=stack)
    if output is not None:
        from polarlambda.download import write_product

        write_product(output, load_theta(training, stack=stack))
    click.echo(to_json(shown))


@trainings.command()
@click.argument("training")
@json_option
@stack_option
def watch(training: str, as_json: bool, stack: str | None) -> None:
    """Follow TRAINING until it ends. --json prints one line for each change."""
    import json

    from polarlambda.training.manage import watch_training

    with make_progress(quiet=as_json) as progress:
        for now in watch_training(training, stack=stack):
            if as_json:
                click.echo(json.dumps(now.to_json(), allow_nan=False))
            else:
                done = now.last.iteration if now.last else 0
                progress.update(done, max(2 * done, 10), describe(now), important=True)


@trainings.command()
@click.argument("training")
@click.option("--force", is_flag=True, help="Also one whose process died without a word.")
@stack_option
def delete(training: str, force: bool, stack: str | None) -> None:
    """Delete TRAINING and the runs of its products. Matrices stay."""
    from polarlambda.training.manage import delete_training

    objects, runs = delete_training(training, force=force, stack=stack)
    click.echo(
        f"deleted training {training}: {objects} object{'s' if objects != 1 else ''}, with "
        f"{runs} run{'s' if runs != 1 else ''}"
    )


def describe(now: Progress) -> str:
    """How far a training is, in one line."""
    if now.last is None:
        return f"{now.state}, no iteration yet"
    last = now.last
    relative = last.norm / last.first_norm if last.first_norm else 0.0
    return (
        f"{last.seconds:6.1f} s  {now.state}  iteration {last.iteration}  loss {last.loss:.6g}  "
        f"gradient {relative:.1e}  ${last.dollars:.5f}"
    )
