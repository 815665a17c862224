"""From exceptions to what a user sees: one line and an exit code."""

from __future__ import annotations

from typing import IO, Any

import click

EXIT_MET = 0
EXIT_BAD_INPUT = 2
EXIT_NOT_REACHED = 3
EXIT_PLATFORM = 4
EXIT_INTERRUPTED = 130  # as shells have it

_OUR_PACKAGES = ("polarcodes", "blockstore", "encoder", "coordinator", "polarlambda")
# What the user named is not there, or belongs to something else: the input has to change. By name,
# so that a mistake in one command does not import the layers of all the others.
_NAMED_WRONGLY = {
    "BucketMissing",
    "CredentialsMissing",
    "FunctionMissing",
    "MatrixMissing",
    "NameTaken",
    "ObjectMissing",
}


class Failure(click.ClickException):
    """Ends the command with one line on standard error and an exit code."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(" ".join(message.split()))
        self.exit_code = exit_code  # type: ignore[misc]  # click means it to be set

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the line."""
        click.echo(f"polarlambda: {self.message}", err=file is None, file=file)


def misused(error: click.UsageError) -> click.ClickException:
    """How click's complaint about a command line is shown: one line that says where help is.

    A group that was called without a command still shows its help.
    """
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        return error
    name = error.ctx.command_path if error.ctx else "polarlambda"
    text = error.format_message().rstrip(".")
    return Failure(f"{text}; `{name} --help` says how it is called", EXIT_BAD_INPUT)


def explain(error: Exception) -> tuple[str, int] | None:
    """Message and exit code for ``error``, or None for one that only a traceback explains.

    The layers raise typed errors. Those that refuse a value are ValueErrors: bad input. The others
    say what the platform did.
    """
    from botocore.exceptions import (
        BotoCoreError,
        ClientError,
        NoCredentialsError,
        NoRegionError,
        PartialCredentialsError,
        ProfileNotFound,
    )

    text = str(error)
    if type(error).__module__.partition(".")[0] in _OUR_PACKAGES:
        refused = isinstance(error, ValueError) or type(error).__name__ in _NAMED_WRONGLY
        return text, EXIT_BAD_INPUT if refused else EXIT_PLATFORM
    if isinstance(error, NoCredentialsError | PartialCredentialsError | ProfileNotFound):
        return f"no AWS credentials: {text}. Set AWS_PROFILE, or run `aws configure`", 2
    if isinstance(error, NoRegionError):
        return "no AWS region: set AWS_DEFAULT_REGION", EXIT_BAD_INPUT
    if isinstance(error, ClientError | BotoCoreError):
        return f"AWS: {text}", EXIT_PLATFORM
    if isinstance(error, OSError):
        return text, EXIT_PLATFORM
    return None
