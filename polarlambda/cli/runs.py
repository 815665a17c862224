"""``polarlambda runs list | show | watch | resume | cancel | delete``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from polarlambda.cli.multiply import Show, finish
from polarlambda.cli.options import (
    json_option,
    memory_option,
    on_option,
    output_option,
    stack_option,
)
from polarlambda.cli.output import check_output, echo_table, to_json
from polarlambda.cli.progress import make_progress

if TYPE_CHECKING:
    from blockstore.records import RunStatus


@click.group()
def runs() -> None:
    """The runs in the bucket, and what became of them."""


@runs.command("list")
@json_option
@stack_option
def list_command(as_json: bool, stack: str | None) -> None:
    """List the runs, oldest first."""
    from polarlambda.runs import list_runs

    found = list_runs(stack=stack)
    if as_json:
        pairs = [
            {"spec": spec.to_json(), "status": status.to_json() if status else None}
            for spec, status in found
        ]
        click.echo(to_json(pairs))
    elif not found:
        click.echo("no runs: `polarlambda multiply NAME X.npy` starts one")
    else:
        echo_table(
            ("RUN", "MATRIX", "STATE", "ARRIVALS", "UNTIL", "CREATED"),
            [
                (
                    spec.run,
                    spec.matrix,
                    status.state if status else "planned",
                    f"{status.arrivals if status else 0} of {spec.workers * spec.subtasks}",
                    spec.until,
                    spec.created,
                )
                for spec, status in found
            ],
        )


@runs.command()
@click.argument("run")
@stack_option
def show(run: str, stack: str | None) -> None:
    """Show all that is known of RUN, as JSON.

    What was asked, status, errors of workers, report.
    """
    from polarlambda.runs import show_run

    click.echo(to_json(show_run(run, stack=stack)))


@runs.command()
@click.argument("run")
@json_option
@stack_option
def watch(run: str, as_json: bool, stack: str | None) -> None:
    """Follow RUN until it ends. --json prints one status a line."""
    import json

    from polarlambda.runs import watch_run

    with make_progress(quiet=as_json) as progress:
        for status in watch_run(run, stack=stack):
            if as_json:
                click.echo(json.dumps(status.to_json(), allow_nan=False))
            else:
                progress.update(status.arrivals, status.answers, describe(status))


@runs.command()
@click.argument("run")
@output_option
@on_option
@memory_option
@json_option
@stack_option
def resume(
    run: str,
    output: Path | None,
    on: Literal["local", "lambda"],
    memory: str | None,
    as_json: bool,
    stack: str | None,
) -> None:
    """Go on with RUN after its coordinator died or was interrupted."""
    from polarlambda.runs import resume_run

    check_output(output)
    with make_progress(quiet=as_json) as progress:
        show = Show(progress)
        result = resume_run(
            run,
            on=on,
            memory=memory,
            on_arrival=show.arrival,
            on_event=show.event,
            stack=stack,
        )
    finish(result, output, as_json)


@runs.command()
@click.argument("run")
@stack_option
def cancel(run: str, stack: str | None) -> None:
    """Stop RUN and keep its estimate.

    Workers that have not begun do not begin, and cost nothing.
    """
    from polarlambda.runs import cancel_run

    status = cancel_run(run, stack=stack)
    if status.state == "cancelled":
        click.echo(f"cancelled run {run}: its workers stop within one task")
    else:
        click.echo(f"run {run} had ended before, it is {status.state}: nothing was changed")


@runs.command()
@click.argument("run")
@stack_option
def delete(run: str, stack: str | None) -> None:
    """Delete everything of RUN, which must have ended."""
    from polarlambda.runs import delete_run

    count = delete_run(run, stack=stack)
    click.echo(f"deleted run {run}: {count} object{'s' if count != 1 else ''}")


def describe(status: RunStatus) -> str:
    """A status in one line."""
    from coordinator.wording import describe_error

    text = f"{status.seconds:6.1f} s  {status.state}  {status.arrivals} of {status.answers} answers"
    if status.error is None or status.exact:
        return text
    return f"{text}, {describe_error(status.error, status.error_upper, status.metric)}"
