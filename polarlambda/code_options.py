"""Options of a code as people type them: ``rounds=1``, ``grid=8x8``, ``times=@measured.csv``."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from polarlambda.errors import BadInput


def parse_options(pairs: Iterable[str]) -> dict[str, Any]:
    """``NAME=VALUE`` texts as keyword arguments of `polarcodes.make_code`, which checks them.

    A value is JSON (a number, ``true``, ``false``, a list), two numbers as ``8x8``, the content of
    a file as ``@FILE`` (.npy, .json, or .csv of numbers), or else text. Raises `BadInput` for a
    pair without a name, a name that comes twice, or a file that cannot be read.
    """
    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not (name.isidentifier() and equals and value):
            raise BadInput(f"--option must be NAME=VALUE such as rounds=1, got {pair!r}")
        if name in options:
            raise BadInput(f"--option {name} is given twice, {options[name]!r} and {value!r}")
        options[name] = _value(value)
    return options


def _value(text: str) -> Any:
    if text.startswith("@"):
        return _content(Path(text[1:]))
    if grid := re.fullmatch(r"(\d+)x(\d+)", text):
        return int(grid[1]), int(grid[2])
    try:
        return json.loads(text)
    except ValueError:
        return text


def _content(path: Path) -> Any:
    from blockstore.arrays import decode_array
    from blockstore.errors import ArrayRefused, CorruptObject

    try:
        if path.suffix == ".npy":
            return decode_array(path.read_bytes()).tolist()
        text = path.read_text()
        if path.suffix == ".json":
            return json.loads(text)
        if path.suffix == ".csv":
            rows = [row for row in csv.reader(text.splitlines()) if row]
            numbers = [[float(entry) for entry in row] for row in rows]
            return numbers[0] if len(numbers) == 1 else numbers
    except (OSError, ValueError, ArrayRefused, CorruptObject) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise BadInput(f"--option cannot read {path}: {reason}") from error
    raise BadInput(f"--option reads .npy, .json and .csv files, got {path}")
