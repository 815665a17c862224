"""The encode function's settings, read from the environment once, at the first event."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["EncodeSettings", "SettingsError"]

LEAST_MEGABYTES = 512


class SettingsError(RuntimeError):
    """The function's environment lacks what it needs."""


@dataclass(frozen=True)
class EncodeSettings:
    """bucket: where sources and matrices lie; memory: bytes of the function; folder: of its disk
    spool."""

    bucket: str
    memory: int
    folder: str

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> EncodeSettings:
        """Raises `SettingsError` naming the variable that is missing."""
        bucket = environment.get("POLARLAMBDA_BUCKET", "")
        if not bucket:
            raise SettingsError("POLARLAMBDA_BUCKET is not set: deploy with the template")
        megabytes = int(environment.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE") or LEAST_MEGABYTES)
        return cls(bucket, megabytes << 20, tempfile.gettempdir())
