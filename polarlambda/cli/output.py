"""How the command writes: JSON that every parser reads, aligned tables."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from polarlambda.errors import BadInput


def to_json(value: Any) -> str:
    """``value`` as JSON. NaN and the infinities are not JSON: they become null."""
    return json.dumps(_finite(value), indent=2, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def echo_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print ``rows`` under ``headers``, left-aligned, two spaces between the columns."""
    widths = [max(map(len, column)) for column in zip(headers, *rows, strict=True)]
    for row in (headers, *rows):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        click.echo(line.rstrip())


def check_output(path: Path | None) -> None:
    """Raise `BadInput` if ``path`` cannot be written; called before anything is spent on a run."""
    if path is None:
        return
    if path.is_dir() and not (path.suffix == ".zarr" and (path / "zarr.json").is_file()):
        raise BadInput(f"-o {path} is a folder: name a file in it, such as {path / 'Y.npy'}")
    try:  # what permissions say is not enough: a file system may refuse files of any name
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        missing = "is not writable" if path.parent.is_dir() else "does not exist"
        raise BadInput(
            f"-o {path}: folder {path.parent} {missing} ({error.strerror}): name another one"
        ) from error
