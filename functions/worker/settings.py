"""The worker's settings, read from the environment once, at the first event."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["SettingsError", "WorkerSettings"]


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
