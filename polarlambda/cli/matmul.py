"""``polarlambda matmul``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from polarlambda.cli.multiply import Show, finish
from polarlambda.cli.options import (
    code_options_option,
    data_grid_option,
    deadline_option,
    decode_option,
    grid_option,
    json_option,
    on_option,
    output_option,
    relaunch_option,
    result_option,
    stack_option,
)
from polarlambda.cli.output import check_output
from polarlambda.cli.progress import make_progress

if TYPE_CHECKING:
    from coordinator.choose_grid import GridChoice
    from encoder import EncodeProgress


@click.command()
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@output_option
@grid_option
@data_grid_option
@click.option(
    "--code",
    default="auto",
    show_default=True,
    metavar="CODE",
    help="Code of both factors, or two with a comma between: hadamard,uncoded codes A alone.",
)
@code_options_option
@click.option("--seed", type=int, default=0, show_default=True, help="Of the code's random parts.")
@click.option(
    "--until",
    default="exact",
    show_default=True,
    metavar="CONDITION",
    help="When it is good enough: exact, error=0.1 (relative) or seconds=5.",
)
@deadline_option
@click.option(
    "--estimator",
    default="best",
    show_default=True,
    metavar="NAME",
    help="best, paper (unbiased) or shrinkage.",
)
@relaunch_option
@decode_option
@result_option
@click.option(
    "--memory",
    metavar="SIZE",
    help="Most memory of encoder and coordinator. Without it: 1GB to encode, then what it takes.",
)
@click.option(
    "--keep",
    metavar="NAME",
    help="Keep the encodings as NAME-a and NAME-b, to be given by name another time.",
)
@on_option
@json_option
@stack_option
def matmul(
    a: str,
    b: str,
    output: Path | None,
    grid: str | None,
    data_blocks: str | None,
    code: str,
    code_options: tuple[str, ...],
    seed: int,
    until: str,
    deadline: float | None,
    estimator: str,
    relaunch: str | None,
    decode: Literal["local", "lambda"],
    kind: Literal["npy", "zarr"] | None,
    memory: str | None,
    keep: str | None,
    on: Literal["local", "lambda"],
    as_json: bool,
    stack: str | None,
) -> None:
    """Multiply A by B on a grid of workers, both factors coded.

    A and B are .npy files, s3:// URLs, or names of encoded matrices (B with encode --transpose).
    The default grid survives any 4 dead workers. Exit code 3 says that CONDITION was not reached;
    the best estimate is at -o then.
    """
    from polarlambda.code_options import parse_options
    from polarlambda.download import is_zarr
    from polarlambda.pair_product import matmul
    from polarlambda.sizes import format_size

    check_output(output)
    with make_progress(quiet=as_json) as progress:
        show = Show(progress)

        def explain(choice: GridChoice) -> None:
            for line in choice.explanation:
                progress.note(line)

        def encoding(side: str, now: EncodeProgress) -> None:
            if now.phase != "encode":  # which goes on beside the upload, and ends later
                text = f"{side}: {now.phase} {format_size(now.done)} of {format_size(now.total)}"
                progress.update(now.done, now.total, text)

        result = matmul(
            a,
            b,
            grid=grid,
            data_blocks=data_blocks,
            code=code,
            code_options=parse_options(code_options),
            seed=seed,
            until=until,
            deadline=deadline,
            estimator=estimator,
            relaunch=relaunch,
            on=on,
            decode=decode,
            result=kind or ("zarr" if output is not None and is_zarr(output) else "npy"),
            memory=memory,
            keep=keep,
            on_choice=explain,
            on_progress=encoding,
            on_arrival=show.arrival,
            on_event=show.event,
            stack=stack,
        )
    finish(result, output, as_json)
