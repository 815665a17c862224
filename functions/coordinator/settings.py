"""The coordinator function's settings, read from the environment once, at the first event."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass

from coordinator.budget import FUNCTION_SHARE
from coordinator.prices import Prices, PricesError, load_prices
from coordinator.report import Billing
from coordinator.tree import TREE_FROM

__all__ = ["CoordinatorSettings", "SettingsError"]

MB = 1 << 20


class SettingsError(RuntimeError):
    """The function's environment lacks what it needs, or holds what cannot be."""


@dataclass(frozen=True)
class CoordinatorSettings:
    """bucket: where matrices and runs lie; worker: name of the worker function; billing: memory
    and time-out of both functions, and the region's prices; dispatch: name of the dispatch
    function, empty without one; dispatch_from: workers from which on it is used; decode: name of
    the decode function, empty without one, with its memory in bytes and its time-out in seconds."""

    bucket: str
    worker: str
    billing: Billing
    dispatch: str = ""
    dispatch_from: int = TREE_FROM
    decode: str = ""
    decode_memory: int = 2048 * MB
    decode_timeout: float = 300.0

    @property
    def memory(self) -> int:
        """Bytes of this function that the coordinator plans with."""
        return int(FUNCTION_SHARE * self.billing.coordinator_memory_mb * MB)

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> CoordinatorSettings:
        """Raises `SettingsError` naming the variable.

        POLARLAMBDA_BUCKET, POLARLAMBDA_WORKER; POLARLAMBDA_WORKER_MEMORY (MB, 1769) and
        POLARLAMBDA_WORKER_TIMEOUT (seconds, 300) as in the template; POLARLAMBDA_DISPATCH,
        POLARLAMBDA_DISPATCH_FROM and POLARLAMBDA_CONCURRENCY (1000); POLARLAMBDA_DECODE with its
        memory and time-out as the worker's; Lambda's own variables.
        """
        missing = [
            n for n in ("POLARLAMBDA_BUCKET", "POLARLAMBDA_WORKER") if not environment.get(n)
        ]
        if missing:
            raise SettingsError(f"{missing[0]} is not set: deploy with the template")
        billing = Billing(
            worker_memory_mb=int(_positive(environment, "POLARLAMBDA_WORKER_MEMORY", 1769)),
            worker_timeout=_positive(environment, "POLARLAMBDA_WORKER_TIMEOUT", 300),
            coordinator_memory_mb=int(
                _positive(environment, "AWS_LAMBDA_FUNCTION_MEMORY_SIZE", 2048)
            ),
            prices=_prices(environment.get("AWS_REGION", "us-east-1")),
            concurrency=int(_positive(environment, "POLARLAMBDA_CONCURRENCY", 1000)),
        )
        return cls(
            bucket=environment["POLARLAMBDA_BUCKET"],
            worker=environment["POLARLAMBDA_WORKER"],
            billing=billing,
            dispatch=environment.get("POLARLAMBDA_DISPATCH", ""),
            dispatch_from=int(_positive(environment, "POLARLAMBDA_DISPATCH_FROM", TREE_FROM)),
            decode=environment.get("POLARLAMBDA_DECODE", ""),
            decode_memory=int(_positive(environment, "POLARLAMBDA_DECODE_MEMORY", 2048)) * MB,
            decode_timeout=_positive(environment, "POLARLAMBDA_DECODE_TIMEOUT", 300),
        )


def _positive(environment: Mapping[str, str], name: str, default: float) -> float:
    text = environment.get(name) or str(default)
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not value > 0:
        raise SettingsError(f"{name} must be a positive number, got {text!r}")
    return value


def _prices(region: str) -> Prices:
    """Prices of the region, or of us-east-1 where the table lacks it: the bill names which."""
    architecture = "arm64" if platform.machine() in ("arm64", "aarch64") else "x86_64"
    try:
        return load_prices(region, architecture)
    except PricesError:
        return load_prices(architecture=architecture)
