"""Typed progress events of an encoding."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class EncodeProgress:
    """How far a phase is.

    phase : "derive" (passes that make a Gram matrix, bytes of the source), "scan" (pass 1, bytes of
    the source), "encode" (pass 2, bytes of the coded blocks) or "upload" (bytes in the bucket,
    tiles reused from an earlier attempt included); done, total : bytes of data.
    """

    phase: str
    done: int
    total: int


Listener = Callable[[EncodeProgress], None]


class Counter:
    """Adds up the bytes of one phase from several threads; the listener is called by one at
    a time, with counts that never fall."""

    def __init__(self, phase: str, total: int, listener: Listener | None) -> None:
        self._phase = phase
        self._total = total
        self._listener = listener
        self._done = 0
        self._lock = threading.Lock()

    def add(self, count: int) -> None:
        """Count `count` more bytes."""
        with self._lock:
            self._done += count
            if self._listener is not None:
                self._listener(EncodeProgress(self._phase, self._done, self._total))
