"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

_F = TypeVar("_F", bound=Callable[..., Any])


class SubtasksType(click.ParamType):
    """A number of tasks for each worker, or "auto"."""

    name = "integer or auto"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The number, or "auto" as it is."""
        return value if value == "auto" else click.INT.convert(value, param, ctx)


class BlocksType(click.ParamType):
    """A number of blocks, or two of them, which stay text."""

    name = "integer or S1xS2"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The number, or "S1xS2" as it is."""
        return value if isinstance(value, str) and "x" in value else click.INT(value, param, ctx)


stack_option = click.option(
    "--stack",
    metavar="NAME",
    help="CloudFormation stack whose outputs name the bucket and the functions. Without it: "
    "POLARLAMBDA_BUCKET, POLARLAMBDA_WORKER, POLARLAMBDA_COORDINATOR, POLARLAMBDA_DECODE.",
)
memory_option = click.option(
    "--memory",
    metavar="SIZE",
    help="Memory of the coordinator in this process: answers and products that do not fit stay in "
    "S3 and are decoded in chunks. Without it: as much as they take.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON and nothing else.")
output_option = click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="Y.npy",
    help="Where to write the product, or the best estimate of it.",
)
on_option = click.option(
    "--on",
    type=click.Choice(["local", "lambda"]),
    default="local",
    show_default=True,
    help="Where the coordinator runs: in this process, or as the deployed function.",
)
relaunch_option = click.option(
    "--relaunch",
    metavar="POLICY",
    help="Invoke slow workers once more: share=0.9 (of the answers is here), times=3 (the median "
    "answer time), or both with a comma.",
)
decode_option = click.option(
    "--decode",
    type=click.Choice(["local", "lambda"]),
    default="local",
    show_default=True,
    help="Who decodes: the coordinator, or decode functions, each a range of columns.",
)
result_option = click.option(
    "--result",
    "kind",
    type=click.Choice(["npy", "zarr"]),
    help="What the product is written as in S3; without it, as the name at -o says, else npy.",
)
grid_option = click.option(
    "--grid", metavar="N1xN2", help="Workers of a matrix product, such as 16x16; or chosen."
)
data_grid_option = click.option(
    "--data-blocks", metavar="S1xS2", help="Blocks that A's rows and B's columns are cut into."
)
deadline_option = click.option("--deadline", type=float, metavar="SECONDS", help="When to give up.")
workers_option = click.option(
    "--workers", type=int, metavar="N", help="Coded blocks, of a number that the code can have."
)
code_option = click.option(
    "--code",
    default="auto",
    show_default=True,
    metavar="CODE",
    help="Code family (docs/codes.md); auto: the one measured best for the dtype, N and R.",
)
code_options_option = click.option(
    "--option",
    "code_options",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of the code, such as rounds=1 or times=@measured.csv; may be repeated.",
)
subtasks_option = click.option(
    "--subtasks",
    type=SubtasksType(),
    default=1,
    show_default=True,
    metavar="R",
    help="Blocks of each worker, each answer sent when it is done; or auto.",
)
per_object_option = click.option(
    "--results-per-object",
    "per_object",
    type=int,
    default=1,
    show_default=True,
    metavar="G",
    help="Answers of a worker that share an object, a divisor of R.",
)


def images_options(command: _F) -> _F:
    """--images, --size and --skip-broken."""
    options = (
        click.option(
            "--images", is_flag=True, help="MATRIX is a folder or shards of JPEG and PNG images."
        ),
        click.option(
            "--size",
            type=int,
            metavar="P",
            help="Resize the images' shorter side to P pixels and cut out the centre.",
        ),
        click.option(
            "--skip-broken", is_flag=True, help="Leave out images that are broken, and list them."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command
