"""The worker's settings, read from the environment once, at the first event."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["SettingsError", "WorkerSettings", "limit_threads"]

VCPU_MEGABYTES = 1769  # Lambda gives one vCPU for that much memory


class SettingsError(RuntimeError):
    """The function's environment lacks what it needs."""


@dataclass(frozen=True)
class WorkerSettings:
    """bucket: where matrices and runs lie."""

    bucket: str

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> WorkerSettings:
        """Raises `SettingsError` naming the variable that is missing."""
        bucket = environment.get("POLARLAMBDA_BUCKET", "")
        if not bucket:
            raise SettingsError("POLARLAMBDA_BUCKET is not set: deploy with the template")
        return cls(bucket)


def limit_threads() -> None:
    """Give BLAS as many threads as the function has vCPUs; to be called before NumPy is imported.

    More would only take turns on the same share of a core.
    """
    memory = int(os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE") or VCPU_MEGABYTES)
    threads = str(max(1, round(memory / VCPU_MEGABYTES)))
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, threads)
