"""The decode functions that the coordinator function may invoke."""

from __future__ import annotations

from typing import Any

from coordinator.decode_fleet import DecodeFunctions
from coordinator.invoker import LambdaInvoker
from functions.coordinator.settings import CoordinatorSettings

__all__ = ["decode_functions"]

THREADS = 32


def decode_functions(settings: CoordinatorSettings, client: Any) -> DecodeFunctions | None:
    """Those of the stack; None where it has none. Nothing is asked of the platform yet."""
    if not settings.decode:
        return None

    def invoker() -> LambdaInvoker:
        return LambdaInvoker(client, settings.decode, threads=THREADS)

    return DecodeFunctions(invoker, settings.decode_memory, settings.decode_timeout)
