"""The objective function's settings, read from the environment once, at the first event."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["ObjectiveSettings", "SettingsError"]


class SettingsError(RuntimeError):
    """The function's environment lacks what it needs."""


@dataclass(frozen=True)
class ObjectiveSettings:
    """bucket: where optimisations lie; objective: the callable that is evaluated here."""

    bucket: str
    objective: str

    @classmethod
    def read(cls, environment: Mapping[str, str] = os.environ) -> ObjectiveSettings:
        """Raises `SettingsError` naming the variable that is missing."""
        values = {}
        for name in ("POLARLAMBDA_BUCKET", "POLARLAMBDA_OBJECTIVE_CALLABLE"):
            values[name] = environment.get(name, "")
            if not values[name]:
                raise SettingsError(f"{name} is not set: deploy with the objective's template")
        return cls(*values.values())
