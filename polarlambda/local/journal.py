"""One record per ended invocation, as JSON lines in the stack's folder, and the REPORT line of
its log.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Invocation:
    """Times are Unix seconds: ``accepted`` by the service, ``started`` in an environment,
    ``handed`` to the handler (None when it never saw the event), ``ended``. ``delivery`` counts
    Lambda's own retries from 1; ``run``, ``worker`` and ``attempt`` are those of the event.
    ``delay`` is the injected sleep in seconds, ``peak_memory`` bytes. ``outcome`` is that of
    `environment.Outcome`, or expired: dropped from the queue before it ran.
    """

    function: str
    request_id: str
    run: str | None
    worker: int | None
    attempt: int | None
    delivery: int
    environment: int
    outcome: str
    error_type: str | None
    accepted: float
    started: float
    ended: float
    memory_mb: int
    cold: bool = False
    handed: float | None = None
    delay: float = 0.0
    init_ms: float = 0.0
    duration_ms: float = 0.0
    billed_ms: int = 0
    peak_memory: int = 0

    def report_line(self) -> str:
        """The REPORT line of Lambda's log (since August 2025 the billed duration contains a cold
        start's init).
        """
        line = (
            f"REPORT RequestId: {self.request_id}\tDuration: {self.duration_ms:.2f} ms\t"
            f"Billed Duration: {self.billed_ms} ms\tMemory Size: {self.memory_mb} MB\t"
            f"Max Memory Used: {math.ceil(self.peak_memory / (1 << 20))} MB\t"
        )
        if self.cold:
            line += f"Init Duration: {self.init_ms:.2f} ms\t"
        if self.outcome not in ("answered", "error"):
            line += f"Status: {'timeout' if self.outcome == 'timeout' else 'error'}\t"
        return line


def billed_ms(duration_ms: float, init_ms: float) -> int:
    """Duration and initialisation, rounded up to whole milliseconds."""
    return math.ceil(duration_ms + init_ms)


class Journal:
    """Appends; a reader in another process sees whole lines."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", buffering=1)

    def append(self, invocation: Invocation) -> None:
        """Write one line."""
        self._file.write(json.dumps(asdict(invocation)) + "\n")

    def close(self) -> None:
        """Nothing is appended after this."""
        self._file.close()


def read_journal(path: Path) -> list[Invocation]:
    """All invocations that have ended so far, in the order of their ends."""
    if not path.exists():
        return []
    return [Invocation(**json.loads(line)) for line in path.read_text().splitlines()]
