"""Structured log: one JSON object a line, which CloudWatch Logs Insights reads as fields."""

from __future__ import annotations

import json
import sys
from typing import Any

__all__ = ["line"]


def line(event: str, **fields: Any) -> None:
    """Write an event with its fields (run, worker, attempt, times, ...)."""
    sys.stdout.write(json.dumps({"event": event, **fields}, default=str) + "\n")
