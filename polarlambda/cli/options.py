"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


class SubtasksType(click.ParamType):
    """A number of tasks for each worker, or "auto"."""

    name = "integer or auto"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        """The number, or "auto" as it is."""
        return value if value == "auto" else click.INT.convert(value, param, ctx)


stack_option = click.option(
    "--stack",
    metavar="NAME",
    help="CloudFormation stack whose outputs name the bucket and the functions. Without it: "
    "POLARLAMBDA_BUCKET, POLARLAMBDA_WORKER, POLARLAMBDA_COORDINATOR.",
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
