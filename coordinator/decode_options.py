"""How a run's product is made: in which memory, by whom, and as what kind of array."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from blockstore.records import RunSpec
from coordinator.budget import least_memory, whole_memory
from coordinator.decode_fleet import DecodeFunctions
from coordinator.decode_wish import DecodeWish
from coordinator.form import AnswerForm
from coordinator.inputs import InputRefused
from coordinator.refusals import PlanRefused

__all__ = ["DECODERS", "KINDS", "DecodeOptions", "check_decoding", "decode_wish"]

DECODERS = ("local", "lambda")
KINDS = ("npy", "zarr")
DEFAULT_MEMORY = 1 << 30  # of a coordinator that leaves the answers in the store


@dataclass(frozen=True)
class DecodeOptions:
    """memory : bytes that the coordinator may use, None for as many as the answers and the product
    take; functions : the deployed decode function, None if there is none; time_left : seconds
    until the platform ends this process, None without a limit."""

    memory: int | None = None
    functions: DecodeFunctions | None = None
    time_left: Callable[[], float] | None = None

    @property
    def budget(self) -> int:
        """Bytes for a coordinator that leaves the answers in the store."""
        return self.memory if self.memory is not None else DEFAULT_MEMORY

    def in_memory(self, form: AnswerForm, spec: RunSpec) -> bool:
        """Whether this coordinator fetches the answers and decodes them in memory: when it does
        not have the decode functions do it, and all of that fits."""
        if spec.decode == "lambda" and self.functions is not None:
            return False
        return self.memory is None or whole_memory(form, x_bytes(spec)) <= self.memory

    def seconds_left(self) -> float | None:
        """Seconds until the platform ends this process, None without a limit."""
        return self.time_left() if self.time_left is not None else None


def decode_wish(decode: str, result: str, options: DecodeOptions) -> DecodeWish:
    """How a product is to be made, for its plan."""
    wish = DecodeWish(decode, result, options.memory)
    if options.functions is None:
        return wish
    functions = options.functions
    return replace(wish, function_memory_mb=functions.memory >> 20, most=functions.most)


def x_bytes(spec: RunSpec) -> int:
    """Bytes of x; none in a product of two encoded matrices, where x is one of them."""
    if spec.right is not None:
        return 0
    return math.prod(spec.x_shape) * np.dtype(spec.x_dtype).itemsize


def check_decoding(form: AnswerForm, spec: RunSpec, options: DecodeOptions) -> None:
    """Raise `InputRefused` or `PlanRefused`, before anything is written or invoked, for a product
    that could not be made."""
    if spec.decode not in DECODERS:
        raise InputRefused(f"decode must be one of {', '.join(DECODERS)}, got {spec.decode!r}")
    if spec.result not in KINDS:
        raise InputRefused(f"result must be one of {', '.join(KINDS)}, got {spec.result!r}")
    if spec.decode == "lambda" and options.functions is None:
        raise InputRefused(
            "decode 'lambda' needs the decode function: deploy the stack, or set POLARLAMBDA_DECODE"
        )
    if options.in_memory(form, spec):
        return
    if spec.reference is not None:
        raise InputRefused(
            f"a product with a reference is decoded in memory, {whole_memory(form, x_bytes(spec))} "
            "bytes of it: give more, or leave the reference, or decode 'lambda', out"
        )
    needed = least_memory(form, x_bytes(spec))
    if needed > options.budget:
        raise PlanRefused(
            "memory",
            options.budget,
            needed,
            f"a coordinator of {form.shares.count} answers needs more bytes, whatever their size",
        )
