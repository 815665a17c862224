"""The command ``polarlambda``: a thin layer on the Python API.

Exit codes: 0 what was asked is met, 2 bad input, 3 not reached (the best estimate is at -o),
4 the platform failed, 130 interrupted with nothing to show. Results go to standard output,
progress and errors to standard error.
"""

from __future__ import annotations

import signal
from importlib import import_module
from typing import Any

import click

from polarlambda.cli.errors import EXIT_INTERRUPTED, Failure, explain, misused

_COMMANDS = {
    "encode": "polarlambda.cli.encode:encode",
    "multiply": "polarlambda.cli.multiply:multiply",
    "matmul": "polarlambda.cli.matmul:matmul",
    "train": "polarlambda.cli.train:train",
    "plan": "polarlambda.cli.plan:plan",
    "matrices": "polarlambda.cli.matrices:matrices",
    "runs": "polarlambda.cli.runs:runs",
    "trainings": "polarlambda.cli.trainings:trainings",
    "optimize": "polarlambda.cli.optimize:optimize",
    "optimizations": "polarlambda.cli.optimizations:optimizations",
    "local": "polarlambda.local.command:local",
    "data": "polarlambda.cli.data:data",
    "demo": "polarlambda.cli.demo:demo",
}


class Commands(click.Group):
    """A group that imports a subcommand when it is used, and ends every error in one line."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands, in the order in which a user meets them."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now."""
        if cmd_name not in _COMMANDS:
            return None
        module, _, attribute = _COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def make_context(self, *arguments: Any, **options: Any) -> click.Context:
        """The context of a call; an option that does not exist ends in one line, too."""
        try:
            return super().make_context(*arguments, **options)
        except click.UsageError as error:
            raise misused(error) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error that a user can act on becomes one line and an exit code."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as stop:
            raise Failure("interrupted", EXIT_INTERRUPTED) from stop
        except click.UsageError as error:
            raise misused(error) from error
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise  # a reader such as `head` that has read enough is no failure: click ends quietly
        except Exception as error:
            known = explain(error)
            if known is None:
                raise
            raise Failure(*known) from error


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="polarlambda", prog_name="polarlambda")
def command() -> None:
    """Matrix products on AWS Lambda that do not wait for stragglers."""


def main() -> None:
    """Entry point of the console script. SIGTERM is taken as Ctrl-C: a run stops paying."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    command(prog_name="polarlambda")
