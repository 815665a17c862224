"""The dispatch function's settings, read from the environment once, at the first event."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["DispatchSettings", "SettingsError"]


class SettingsError(RuntimeError):
    """The function's environment lacks what it needs."""


@dataclass(frozen=True)
class DispatchSettings:
    """worker: name of the worker function."""

    worker: str

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> DispatchSettings:
        """Raises `SettingsError` naming the variable that is missing."""
        worker = environment.get("POLARLAMBDA_WORKER", "")
        if not worker:
            raise SettingsError("POLARLAMBDA_WORKER is not set: deploy with the template")
        return cls(worker)
