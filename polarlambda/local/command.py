"""``polarlambda local``: run a command inside a fresh stack, or keep one in the background."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable
from typing import Any, TypeVar

import click

from polarlambda.local import background
from polarlambda.local.errors import OptionRefused
from polarlambda.local.runner import run_in_stack
from polarlambda.local.stack import LocalStack

EXIT_NOT_RUNNING = 3
_F = TypeVar("_F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--delays",
        metavar="FILE.csv",
        help="Replay delays: a row a run, a column a worker, seconds above the row's minimum.",
    ),
    click.option(
        "--model", metavar="NAME", help="Draw delays instead: exponential, lambda-rare-tail."
    ),
    click.option(
        "--scale", type=float, default=1.0, show_default=True, help="Factor on all delays."
    ),
    click.option(
        "--fail",
        type=int,
        default=0,
        metavar="K",
        help="K workers of each run die at every attempt, without an answer.",
    ),
    click.option(
        "--throttle",
        type=float,
        default=0.0,
        metavar="RATE",
        help="Share of the workers' invocations that is refused with a 429.",
    ),
    click.option(
        "--seed", type=int, default=0, show_default=True, help="Seed of everything that is drawn."
    ),
    click.option(
        "--spawn",
        is_flag=True,
        help="Start every environment from nothing (slow) instead of forking it.",
    ),
    click.option(
        "--build", is_flag=True, help="Build the functions anew first; else only what is not there."
    ),
    click.option(
        "--parameter",
        "parameters",
        multiple=True,
        metavar="NAME=VALUE",
        help="A parameter of template.yaml, such as WorkerMemory=512.",
    ),
    click.option(
        "--objective",
        metavar="FOLDER",
        help="An objective for `polarlambda optimize` (scripts/new_objective.py).",
    ),
    click.option("--template", metavar="FILE", help="Another template.yaml than the checkout's."),
)


def _stack_options(function: _F) -> _F:
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


@click.group()
def local() -> None:
    """S3 and Lambda on this machine, without an AWS account.

    A stack that was started in a folder is found by status and stop in that folder.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("polarlambda: %(message)s"))
    logger = logging.getLogger("polarlambda.local")
    logger.handlers = [handler]
    logger.setLevel(logging.INFO)


@local.command("run", context_settings={"allow_interspersed_args": False})
@_stack_options
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def run(ctx: click.Context, /, command: tuple[str, ...], **options: Any) -> None:
    """Run COMMAND inside a fresh stack and return its exit code.

    Put -- before COMMAND. The stack and all it holds are gone when COMMAND ends.
    """
    ctx.exit(run_in_stack(LocalStack(**_arguments(options)), command))


@local.command("start")
@_stack_options
def start(**options: Any) -> None:
    """Start a stack in the background and print the variables that point to it.

    In a shell: eval "$(polarlambda local start)"
    """
    stack = background.start(_arguments(options))
    for warning in stack.warnings:
        click.echo(f"polarlambda: {warning}", err=True)
    _export(stack)


@local.command("status")
@click.pass_context
def status(ctx: click.Context) -> None:
    """Say whether a stack runs in the background, and print its variables (exit code 3: none)."""
    stack = background.find()
    if stack is None:
        click.echo(
            "polarlambda: no local stack was started in this folder: `polarlambda local start`",
            err=True,
        )
        ctx.exit(EXIT_NOT_RUNNING)
    click.echo(f"polarlambda: process {stack.pid}, logs in {stack.folder}", err=True)
    _export(stack)


@local.command("stop")
def stop() -> None:
    """Stop the stack in the background; what it held is gone."""
    stack = background.find()
    if stack is None:
        click.echo("polarlambda: no local stack was started in this folder", err=True)
        return
    background.stop(stack)
    click.echo("polarlambda: the local stack has stopped", err=True)


def _export(stack: background.Background) -> None:
    for name, value in stack.environment.items():
        click.echo(f"export {name}={shlex.quote(value)}")


def _arguments(options: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `LocalStack` that the options mean."""
    parameters = {}
    for text in options.pop("parameters"):
        name, separator, value = text.partition("=")
        if not separator:
            raise OptionRefused(f"--parameter takes NAME=VALUE, not {text!r}")
        parameters[name] = value
    build = "always" if options.pop("build") else "absent"
    return {**options, "parameters": parameters, "build": build}
