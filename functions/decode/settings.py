"""The decode function's settings, read from the environment once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["DecodeSettings", "SettingsError"]


class SettingsError(RuntimeError):
    """The function's environment lacks what it needs."""


@dataclass(frozen=True)
class DecodeSettings:
    """bucket: where runs lie."""

    bucket: str

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> DecodeSettings:
        """Raises `SettingsError` unless POLARLAMBDA_BUCKET is set."""
        bucket = environment.get("POLARLAMBDA_BUCKET")
        if not bucket:
            raise SettingsError("POLARLAMBDA_BUCKET is not set: deploy with the template")
        return cls(bucket)
