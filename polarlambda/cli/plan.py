"""``polarlambda plan``: every figure of a product before anything is written or invoked."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from polarlambda.cli.options import (
    BlocksType,
    code_option,
    code_options_option,
    decode_option,
    grid_option,
    json_option,
    per_object_option,
    result_option,
    stack_option,
    subtasks_option,
    workers_option,
)
from polarlambda.cli.output import to_json
from polarlambda.cli.plan_pair import plan_pair
from polarlambda.cli.plan_text import show_plan
from polarlambda.errors import BadInput


@click.command()
@click.argument("target", required=False, metavar="[NAME | MATRIX.npy]")
@click.argument("x", required=False, metavar="[X.npy]")
@click.option("--shape", metavar="NxD", help="Rows and columns of a matrix not yet at hand.")
@click.option("--dtype", metavar="DTYPE", help="Its dtype, such as uint8 or float32.")
@workers_option
@click.option(
    "--data-blocks", type=BlocksType(), metavar="S", help="Blocks; S1xS2 of a matrix product."
)
@click.option("--redundancy", type=float, metavar="R", help="(N - S) / N, instead of S.")
@code_option
@code_options_option
@subtasks_option
@per_object_option
@click.option("--memory", default="1GB", show_default=True, help="Memory of the encoder.")
@click.option("--encode-memory", type=int, metavar="MB", help="Of an encode function.  [3008]")
@click.option("--encode-disk", type=int, metavar="MB", help="Of an encode function.  [512]")
@click.option("--columns", type=int, default=1, show_default=True, help="Columns of x.")
@click.option("--x-dtype", default="float64", show_default=True, help="Dtype of x.")
@click.option("--delays", default="lambda-rare-tail", show_default=True, help="Delay model.")
@click.option("--worker-memory", type=int, metavar="MB", help="Default: what is deployed.")
@click.option("--on", type=click.Choice(["local", "lambda"]), default="local", show_default=True)
@decode_option
@result_option
@click.option(
    "--coordinator-memory",
    metavar="SIZE",
    help="Of the coordinator, which decodes in chunks what it cannot hold.",
)
@click.option("--concurrency", type=int, metavar="C", help="Of the account; default: 1,000.")
@click.option(
    "--prices", type=click.Path(path_type=Path), metavar="FILE.json", help="Instead of the shipped."
)
@click.option("--region", metavar="NAME", help="Whose prices to take; default: us-east-1.")
@click.option(
    "--matmul",
    "other",
    metavar="B",
    help="Plan the product with a matrix, B.npy or DxN2, both factors coded.",
)
@grid_option
@json_option
@stack_option
def plan(
    target: str | None,
    x: str | None,
    shape: str | None,
    dtype: str | None,
    columns: int,
    x_dtype: str,
    delays: str,
    worker_memory: int | None,
    on: str,
    concurrency: int | None,
    prices: Path | None,
    region: str | None,
    other: str | None,
    grid: str | None,
    as_json: bool,
    stack: str | None,
    code_options: tuple[str, ...],
    decode: str,
    kind: str | None,
    coordinator_memory: str | None,
    encode_memory: int | None,
    encode_disk: int | None,
    **encoding_options: Any,
) -> None:
    """Plan a product: sizes, memory, requests, dollars, arrivals and time.

    For an encoded matrix give its NAME, and X.npy if it is at hand. Before encoding, give
    MATRIX.npy, or --shape and --dtype. With --matmul it is a product of two matrices, and coding
    both is compared with coding one of them and none. Nothing is written or invoked.
    """
    from polarlambda.code_options import parse_options
    from polarlambda.planning import plan_encoded, plan_matrix

    if other is not None:
        if x is not None or on != "local":
            raise BadInput("--matmul plans A B: leave X.npy and --on out")
        blocks = encoding_options["data_blocks"]
        if isinstance(blocks, int):
            raise BadInput(f"--data-blocks of a matrix product is S1xS2, got {blocks}")
        plan_pair(
            target,
            _parse_shape(shape),
            other,
            dtype,
            as_json,
            grid=grid,
            data_blocks=blocks,
            code=encoding_options["code"],
            delays=delays,
            worker_memory_mb=worker_memory,
            decode=decode,
            result=kind or "npy",
            coordinator_memory=coordinator_memory,
            concurrency=concurrency,
            prices=prices,
            region=region,
        )
        return
    if grid is not None or isinstance(encoding_options["data_blocks"], str):
        raise BadInput("--grid and S1xS2 are for a matrix product: give --matmul B, too")
    both: dict[str, Any] = {"delays": delays, "worker_memory_mb": worker_memory, "on": on}
    both |= {"decode": decode, "result": kind or "npy", "coordinator_memory": coordinator_memory}
    both |= {"concurrency": concurrency, "prices": prices, "region": region}
    if target is not None and (shape or dtype):
        raise BadInput(f"give either {target} or --shape and --dtype, not both")
    if target is None and not (shape and dtype):
        raise BadInput("give the NAME of an encoded matrix, MATRIX.npy, or --shape and --dtype")
    if target is None or _is_file(target):
        if x is not None:
            raise BadInput("X.npy is for an encoded matrix; before encoding give --columns")
        encoding, run = plan_matrix(
            target,
            shape=_parse_shape(shape),
            dtype=dtype,
            x_columns=columns,
            x_dtype=x_dtype,
            code_options=parse_options(code_options),
            encode_memory_mb=encode_memory,
            encode_disk_mb=encode_disk,
            **encoding_options,
            **both,
        )
    else:
        encoding = None
        run = plan_encoded(target, x, x_columns=columns, x_dtype=x_dtype, **both, stack=stack)
    if as_json:
        before = {"encoding": encoding.to_json()} if encoding else {}
        click.echo(to_json({**run.to_json(), **before}))
    else:
        show_plan(encoding, run)


def _is_file(target: str) -> bool:
    """Matrix names have no slashes and, by this rule, do not end like files."""
    suffixes = (".npy", ".zarr", ".parquet")
    return "/" in target or target.endswith(suffixes) or Path(target).is_file()


def _parse_shape(shape: str | None) -> tuple[int, int] | None:
    if shape is None:
        return None
    match = re.fullmatch(r"\s*(\d+)\s*[x×,]\s*(\d+)\s*", shape)
    if match is None:
        raise BadInput(f"--shape must be rows x columns such as 20000x12288, got {shape!r}")
    return int(match[1]), int(match[2])
