"""Structured log: one JSON object a line."""

from __future__ import annotations

import json
import sys
from typing import Any

from blockstore.tasks import WorkerTask


def line(event: str, task: WorkerTask | None = None, **fields: Any) -> None:
    """Write an event, with the run, worker and attempt it belongs to."""
    bound = {} if task is None else {"run": task.run, "worker": task.worker}
    if task is not None:
        bound["attempt"] = task.attempt
    sys.stdout.write(json.dumps({"event": event, **fields, **bound}, default=str) + "\n")
