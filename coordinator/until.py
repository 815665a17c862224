"""When a run may end: the conditions a caller can ask for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

__all__ = ["Until", "UntilRefused", "parse_until"]

Kind = Literal["exact", "error", "seconds", "tasks"]


class UntilRefused(ValueError):
    """The text of an `until` condition could not be understood."""


@dataclass(frozen=True)
class Until:
    """A condition that ends a run.

    exact: the answers that arrived are decodable.
    error: the predicted relative rms error of the estimate (sqrt(v), math.md section 3) is at most
        `bound`. It is the rms error and not its 95 % bound, so that `error=0.1` asks for what the
        `error` field of the result reports.
    seconds: `bound` seconds have passed since the run began.
    tasks: the answers that arrived determine at least this share of the product's rows exactly.

    A set of answers that becomes decodable first ends every kind of run with the exact result.
    """

    kind: Kind
    bound: float | None = None

    def __str__(self) -> str:
        return self.kind if self.bound is None else f"{self.kind}={self.bound:g}"


def parse_until(text: str | Until) -> Until:
    """Read "exact", "error=0.1", "seconds=5" or "tasks=0.95".

    Raises:
        UntilRefused: any other text, a bound that is not a positive finite number, or more tasks
            than all of them.
    """
    if isinstance(text, Until):
        return text
    forms = 'use "exact", "error=0.1", "seconds=5" or "tasks=0.95"'
    if not isinstance(text, str):
        raise UntilRefused(f"until must be text, got {type(text).__name__}: {forms}")
    kind, equals, number = text.strip().partition("=")
    if kind == "exact" and not equals:
        return Until("exact")
    named: dict[str, Kind] = {"error": "error", "seconds": "seconds", "tasks": "tasks"}
    if kind not in named or not equals:
        raise UntilRefused(f"until has no form {text!r}: {forms}")
    try:
        bound = float(number)
    except ValueError:
        bound = math.nan
    if not (math.isfinite(bound) and bound > 0):
        raise UntilRefused(
            f"until needs a positive number after '{kind}=', got {number!r}: {forms}"
        )
    if kind == "tasks" and bound > 1:
        raise UntilRefused(
            f"until needs a share of the rows, at most 1, after 'tasks=', got {number!r}"
        )
    return Until(named[kind], bound)
