"""``polarlambda matrices list | show | get | delete``."""

from __future__ import annotations

from pathlib import Path

import click

from polarlambda.cli.options import json_option, stack_option
from polarlambda.cli.output import echo_table, to_json


@click.group()
def matrices() -> None:
    """The encoded matrices in the bucket."""


@matrices.command("list")
@json_option
@stack_option
def list_command(as_json: bool, stack: str | None) -> None:
    """List the usable matrices."""
    from polarlambda.matrices import describe, list_matrices
    from polarlambda.sizes import format_size

    found = [describe(manifest) for manifest in list_matrices(stack=stack)]
    if as_json:
        click.echo(to_json(found))
    elif not found:
        click.echo("no matrices: `polarlambda encode MATRIX.npy NAME` makes one")
    else:
        echo_table(
            ("NAME", "ROWS x COLUMNS", "DTYPE", "CODE", "WORKERS", "BLOCKS", "STORED", "CREATED"),
            [
                (
                    m["name"],
                    f"{m['shape'][0]} x {m['shape'][1]}",
                    m["source_dtype"],
                    m["code"],
                    str(m["workers"]),
                    str(m["data_blocks"]),
                    format_size(m["stored_bytes"]),
                    m["created"],
                )
                for m in found
            ],
        )


@matrices.command()
@click.argument("name")
@json_option
@stack_option
def show(name: str, as_json: bool, stack: str | None) -> None:
    """Show how NAME is encoded."""
    from polarlambda.matrices import describe, show_matrix
    from polarlambda.sizes import format_size

    shown = describe(show_matrix(name, stack=stack))
    if as_json:
        click.echo(to_json(shown))
        return
    rows, columns = shown.pop("shape")
    shown["shape"] = f"{rows} x {columns}"
    for field, value in shown.items():
        if field.endswith("_bytes"):
            value = f"{format_size(value)} ({value} bytes)"
        elif isinstance(value, dict):
            known = ((name, part) for name, part in value.items() if part not in (None, []))
            value = ", ".join(f"{name.replace('_', ' ')} {part}" for name, part in known)
        elif isinstance(value, list):
            value = ", ".join(map(str, value)) or "none"
        click.echo(f"{field.replace('_', ' '):<16} {value}")


@matrices.command()
@click.argument("name")
@click.argument("file")
@click.option(
    "-o", "--output", required=True, type=click.Path(path_type=Path), help="Where to write it."
)
@stack_option
def get(name: str, file: str, output: Path, stack: str | None) -> None:
    """Download FILE of the rows of NAME: labels.npy, names.txt or images.json."""
    from polarlambda.matrices import read_companion

    output.write_bytes(read_companion(name, file, stack=stack))
    click.echo(f"{file} in {output}")


@matrices.command()
@click.argument("name")
@stack_option
def delete(name: str, stack: str | None) -> None:
    """Delete NAME and all its coded blocks."""
    from polarlambda.matrices import delete_matrix

    count = delete_matrix(name, stack=stack)
    click.echo(f"deleted matrix {name}: {count} object{'s' if count != 1 else ''}")
