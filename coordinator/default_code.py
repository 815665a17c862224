"""The code that is used when none is named (docs/adr/0004-default-code.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coordinator.refusals import PlanRefused
from polarcodes import ErasureCode, make_code

__all__ = ["AUTO", "CodeFamily", "choose_family"]

AUTO = "auto"
SMALL = 64  # workers: below, one plain round saves no answer over the polar code


@dataclass(frozen=True)
class CodeFamily:
    """A code by name and options, without its size; `why` is empty where it was given."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)
    why: str = ""

    def make(self, workers: int, data_blocks: int, seed: int = 0) -> ErasureCode:
        """The code of this size; raises polarcodes.InvalidCode."""
        return make_code(
            self.name, workers=workers, data_blocks=data_blocks, seed=seed, **self.options
        )

    def __str__(self) -> str:
        options = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.name} ({options})" if options else self.name


def choose_family(
    code: str, options: Mapping[str, Any], dtype: np.dtype[Any], workers: int, subtasks: int = 1
) -> CodeFamily:
    """The family named, or for "auto" the one that measurements recommend for `dtype`, N and the
    number of blocks of each worker.

    Raises PlanRefused for options without a code: they belong to one.
    """
    if code != AUTO:
        return CodeFamily(code, dict(options))
    if options:
        raise PlanRefused(
            "code", AUTO, None, f"the options {', '.join(options)} need the name of their code"
        )
    if subtasks > 1:
        return CodeFamily("hadamard", {}, "any data_blocks x subtasks answers decode")
    if dtype.kind == "f":
        why = f"any data_blocks answers decode, and {dtype.name} blocks keep their size"
        return CodeFamily("hadamard", {}, why)
    power_of_two = workers > 1 and not workers & (workers - 1)
    if workers < SMALL and power_of_two:
        why = f"sums of {dtype.name} stay integers; the cheapest decoder of those at N < {SMALL}"
        return CodeFamily("polar", {}, why)
    why = f"sums of {dtype.name} stay integers, with fewer answers than polar needs"
    return CodeFamily("hadamard", {"rounds": 1}, why)
