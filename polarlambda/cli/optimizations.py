"""``polarlambda optimizations``: what was optimised here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from polarlambda.cli.optimize import (
    finish,
    objective_stack_option,
    picture_option,
    shown,
    theta_option,
)
from polarlambda.cli.options import json_option, stack_option
from polarlambda.cli.output import echo_table, to_json
from polarlambda.cli.progress import make_progress


@click.group()
def optimizations() -> None:
    """List, watch, resume and delete optimisations."""


@optimizations.command("list")
@json_option
@stack_option
def list_(as_json: bool, stack: str | None) -> None:
    """Show what there is, oldest first."""
    from polarlambda.optimization import list_optimizations, show_optimization

    found = [show_optimization(name, stack=stack) for name in list_optimizations(stack=stack)]
    rows = [_row(shown) for shown in found]
    if as_json:
        click.echo(to_json([dict(zip(_COLUMNS, row, strict=True)) for row in rows]))
    else:
        echo_table(_COLUMNS, [[str(cell) for cell in row] for row in rows])


_COLUMNS = ("optimization", "objective", "created", "state", "iterations", "best score")


def _row(shown: dict[str, Any]) -> list[Any]:
    spec, status = shown["spec"], shown["status"] or {"state": "begun", "history": []}
    last = status["history"][-1] if status["history"] else {"iteration": 0, "best_score": None}
    return [
        spec["optimization"],
        spec["objective"],
        spec["created"],
        status["state"],
        last["iteration"],
        last["best_score"],
    ]


@optimizations.command("show")
@click.argument("optimization")
@stack_option
def show(optimization: str, stack: str | None) -> None:
    """Print what was asked and how far it is, as JSON."""
    from polarlambda.optimization import show_optimization

    click.echo(to_json(show_optimization(optimization, stack=stack)))


@optimizations.command("watch")
@click.argument("optimization")
@stack_option
def watch(optimization: str, stack: str | None) -> None:
    """Show each iteration as it ends."""
    from polarlambda.optimization import show_optimization, watch_optimization

    options = show_optimization(optimization, stack=stack)["spec"]["options"]
    with make_progress() as progress:
        show = shown(progress, options["iterations"])
        for figures in watch_optimization(optimization, stack=stack):
            show(figures)


@optimizations.command("resume")
@click.argument("optimization")
@click.option("--iterations", type=int, help="Another limit than it was begun with.")
@theta_option
@picture_option
@json_option
@stack_option
@objective_stack_option
def resume(
    optimization: str,
    iterations: int | None,
    output: Path | None,
    picture: Path | None,
    as_json: bool,
    stack: str | None,
    objective_stack: str | None,
) -> None:
    """Go on from the newest checkpoint."""
    from polarlambda.optimization import resume_optimization, show_optimization

    options = show_optimization(optimization, stack=stack)["spec"]["options"]
    with make_progress(quiet=as_json) as progress:
        result = resume_optimization(
            optimization,
            iterations=iterations,
            on_iteration=shown(progress, iterations or options["iterations"]),
            objective_stack=objective_stack,
            stack=stack,
        )
    finish(result, output, picture, as_json)


@optimizations.command("cancel")
@click.argument("optimization")
@stack_option
def cancel(optimization: str, stack: str | None) -> None:
    """Have it end after the iteration it is in."""
    from polarlambda.optimization import cancel_optimization

    cancel_optimization(optimization, stack=stack)
    click.echo(f"{optimization} will end after the iteration it is in")


@optimizations.command("delete")
@click.argument("optimization")
@stack_option
def delete(optimization: str, stack: str | None) -> None:
    """Delete everything of it."""
    from polarlambda.optimization import delete_optimization

    count = delete_optimization(optimization, stack=stack)
    click.echo(f"deleted {count} objects of {optimization}")
