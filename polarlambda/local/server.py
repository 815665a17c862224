"""A server process of the stack: says in one JSON line that it is ready, ends when its standard
input does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from polarlambda.local.errors import LocalStackError

_PATIENCE = 10.0  # seconds to end by itself


class ServerProcess:
    """``python -m module arguments``. We hold the only end of its standard input, so it ends
    with us, even when we are killed; in a session of its own, a Ctrl-C at the terminal is ours
    to handle, not its.
    """

    def __init__(
        self, module: str, arguments: list[str], *, log: Path, pass_fds: Sequence[int] = ()
    ) -> None:
        self._module = module
        self._log = log
        package = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                env={**os.environ, "PYTHONPATH": path, "TMPDIR": str(log.parent)},
                pass_fds=pass_fds,
                start_new_session=True,
            )

    @property
    def running(self) -> bool:
        """Whether the process is there."""
        return self._process.poll() is None

    def ready(self) -> dict[str, Any]:
        """Wait for its first line; raises LocalStackError with the reason when it ends instead."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        message: dict[str, Any] = json.loads(line) if line else {}
        if line and "error" not in message:
            return message
        log = self._log.read_text(errors="replace").strip().splitlines()
        reason = message.get("error") or (log[-1] if log else "no reason given")
        raise LocalStackError(f"{self._module} did not start: {reason}")

    def stop(self) -> None:
        """End it: politely, then not."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
