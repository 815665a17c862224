"""Options of a code as people type them: ``rounds=1``, ``basis=chebyshev``, ``grid=8x8``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from polarlambda.errors import BadInput


def parse_options(pairs: Iterable[str]) -> dict[str, Any]:
    """``NAME=VALUE`` texts as keyword arguments of `polarcodes.make_code`, which checks them.

    A value is JSON (a number, ``true``, ``false``, a list), two numbers as ``8x8``, or else text.
    Raises `BadInput` for a pair without a name or a name that comes twice.
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
    if grid := re.fullmatch(r"(\d+)x(\d+)", text):
        return int(grid[1]), int(grid[2])
    try:
        return json.loads(text)
    except ValueError:
        return text
