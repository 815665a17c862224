"""Where the demo plays: a local stack of its own, or the AWS endpoints that are already set."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from polarlambda.local import LocalStack

ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_LAMBDA")


class Stage:
    """Runs happen here; before each one `reset` makes its delays those of every other."""

    def __init__(self, stack: LocalStack | None, delays: Path) -> None:
        self._stack = stack
        self._delays = delays

    @property
    def delayed(self) -> bool:
        """Whether the stage decides on the delays (it does not on somebody else's endpoints)."""
        return self._stack is not None

    def warm(self, workers: int) -> None:
        """Start the workers' environments and end all delays, for a run that warms everything up:
        no run that is timed pays for first starts."""
        if self._stack is not None:
            self._stack.warm("WorkerFunction", workers)
            self._stack.set_chaos()

    def reset(self) -> None:
        """End what still sleeps, and begin again at the first row of the delays."""
        if self._stack is not None:
            self._stack.drain()
            self._stack.set_chaos(delays=self._delays)


@contextmanager
def open_stage(
    folder: Path, delays: np.ndarray[Any, Any], say: Callable[[str], None]
) -> Iterator[Stage]:
    """A local stack with ``delays`` (workers,) seconds, its names and endpoints in the environment
    while the context lasts; or the environment as it is, if it has an AWS endpoint. ``say`` is
    told what takes a while."""
    table = folder / "delays.csv"
    table.write_text(",".join(f"{delay:.4f}" for delay in delays) + "\n")
    if any(os.environ.get(name) for name in ENDPOINTS):
        yield Stage(None, table)
        return
    from polarlambda.local import LocalStack

    say("Starting S3 and Lambda on this machine; the first time, both functions are built for it.")
    before = dict(os.environ)
    with LocalStack(delays=table, build="stale") as stack:
        os.environ.update(stack.environment)
        try:
            yield Stage(stack, table)
        finally:
            os.environ.clear()
            os.environ.update(before)
