"""``polarlambda encode``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from polarlambda.cli.options import (
    code_option,
    code_options_option,
    images_options,
    json_option,
    per_object_option,
    stack_option,
    subtasks_option,
    workers_option,
)
from polarlambda.cli.output import to_json
from polarlambda.cli.progress import make_progress

if TYPE_CHECKING:
    from coordinator.planning import CodeChoice
    from encoder import EncodeProgress


@click.command()
@click.argument("matrix")
@click.argument("name")
@workers_option
@click.option("--data-blocks", type=int, metavar="S", help="Blocks the matrix is cut into.")
@click.option("--redundancy", type=float, metavar="R", help="(N - S) / N, instead of S.")
@code_option
@code_options_option
@subtasks_option
@per_object_option
@click.option(
    "--schedule",
    metavar="NAME",
    help="A schedule instead of a code: cpgc, uc-mmc, rcsc, searched or mcc.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the code's random parts.")
@click.option(
    "--memory", default="1GB", show_default=True, metavar="SIZE", help="Most memory to use."
)
@images_options
@click.option(
    "--columns",
    metavar="A,B,...",
    help="Columns of Parquet files, in this order; all without.",
)
@click.option(
    "--fill-missing",
    is_flag=True,
    help="Chunks that a Zarr array does not store have its fill value.",
)
@click.option(
    "--transpose", "derive", flag_value="transpose", help="Encode MATRIX's transpose, for training."
)
@click.option("--gram", "derive", flag_value="gram", help="Encode MATRIX^T MATRIX, for training.")
@click.option(
    "--on",
    type=click.Choice(["local", "lambda"]),
    default="local",
    show_default=True,
    help="Where it is encoded: in this process, or by the deployed function from S3.",
)
@click.option("--replace", is_flag=True, help="Overwrite a matrix of that name.")
@json_option
@stack_option
def encode(
    matrix: str,
    name: str,
    workers: int | None,
    data_blocks: int | None,
    redundancy: float | None,
    code: str,
    code_options: tuple[str, ...],
    subtasks: int | Literal["auto"],
    per_object: int,
    schedule: str | None,
    seed: int,
    memory: str,
    images: bool,
    size: int | None,
    skip_broken: bool,
    columns: str | None,
    fill_missing: bool,
    derive: Literal["transpose", "gram"] | None,
    on: Literal["local", "lambda"],
    replace: bool,
    as_json: bool,
    stack: str | None,
) -> None:
    """Encode MATRIX under NAME.

    MATRIX is an .npy file, a Zarr array or Parquet files, by path or s3:// URL, or with --images a
    folder or WebDataset shards of JPEG and PNG images (docs/sources.md).

    Workers and redundancy that are not given are chosen by the expected time of a product, the
    code by what was measured (docs/codes.md).
    """
    from polarlambda.code_options import parse_options
    from polarlambda.encoding import encode
    from polarlambda.matrices import describe
    from polarlambda.sizes import format_size

    with make_progress(quiet=as_json) as progress:

        def explain(choice: CodeChoice) -> None:
            for line in choice.explanation:
                progress.note(line)

        def show(now: EncodeProgress) -> None:
            if now.phase == "encode":  # goes on beside the upload, which ends later
                return
            text = f"{now.phase} {format_size(now.done)} of {format_size(now.total)}"
            progress.update(now.done, now.total, text)

        manifest = encode(
            matrix,
            name,
            workers=workers,
            data_blocks=data_blocks,
            redundancy=redundancy,
            code=code,
            code_options=parse_options(code_options),
            subtasks=subtasks,
            per_object=per_object,
            schedule=schedule,
            seed=seed,
            memory=memory,
            replace=replace,
            images=images,
            size=size,
            skip_broken=skip_broken,
            columns=columns.split(",") if columns else (),
            fill_missing=fill_missing,
            derive=derive,
            on=on,
            on_choice=explain,
            on_note=progress.note,
            on_progress=show,
            stack=stack,
        )
    shown = describe(manifest)
    if as_json:
        click.echo(to_json(shown))
        return
    several = manifest.shares.per_worker
    each = f" with {several} blocks each" if several > 1 else ""
    click.echo(
        f"encoded {name}: {manifest.rows} x {manifest.columns} {shown['source_dtype']} in "
        f"{shown['objects']} objects, {format_size(shown['stored_bytes'])} of {shown['dtype']} "
        f"({shown['code']} code, {manifest.workers} workers{each}, {manifest.data_blocks} data "
        "blocks)"
    )
