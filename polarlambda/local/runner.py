"""Runs a command inside a stack: its exit code is ours, signals reach it, nothing outlives it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType

from polarlambda.local.errors import OptionRefused
from polarlambda.local.stack import LocalStack
from polarlambda.local.zygote import die_with_parent

GRACE = 10.0  # seconds between SIGTERM and SIGKILL


def run_in_stack(stack: LocalStack, command: Sequence[str]) -> int:
    """Start ``stack``, run ``command`` with its variables, stop the stack.

    Returns the command's exit code, 128 + n when signal n ended it, as a shell says it. Raises
    `OptionRefused` when there is no such command. SIGTERM is passed on, and enforced after 10 s; a
    Ctrl-C at a terminal reaches the command by itself.
    """
    with _Signals() as signals, stack:
        try:
            process = subprocess.Popen(
                command, env=_environment(stack), preexec_fn=_preexec(os.getpid())
            )
        except OSError as error:
            reason = error.strerror or str(error)
            raise OptionRefused(f"cannot run {command[0]!r}: {reason}") from None
        signals.process = process
        code = signals.wait()
    return code if code >= 0 else 128 - code


def _environment(stack: LocalStack) -> dict[str, str]:
    """Ours and the stack's, without a real account's profile; polarlambda is on the PATH."""
    own = {k: v for k, v in os.environ.items() if k not in ("AWS_PROFILE", "AWS_SESSION_TOKEN")}
    path = [own.get("PATH", os.defpath), str(Path(sys.executable).parent)]
    return {**own, **stack.environment, "PATH": os.pathsep.join(path)}


def _preexec(parent: int) -> Callable[[], None]:
    def prepare() -> None:
        die_with_parent(parent, signal.SIGTERM)

    return prepare


class _Signals:
    """Handlers for the time of one run."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self._ending = False
        self._before: dict[int, object] = {}

    def __enter__(self) -> _Signals:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_IGN:
                continue  # nohup, or a shell's background job: somebody wants it ignored
            self._before[number] = signal.signal(number, self._received)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def wait(self) -> int:
        """The command's return code; after a SIGTERM it has `GRACE` seconds to end."""
        assert self.process is not None
        while True:
            try:
                code = self.process.wait(GRACE if self._ending else 0.5)
            except subprocess.TimeoutExpired:
                if self._ending:
                    self.process.kill()
                continue
            self.process, self._ending = None, True  # what is left is to stop the stack: let it
            return code

    def _received(self, number: int, _frame: FrameType | None) -> None:
        if self.process is None:
            if not self._ending:  # while the stack starts: leave, and let it clean up
                self._ending = True
                raise SystemExit(128 + number)
            return
        if number == signal.SIGINT and _at_terminal():
            return
        self._ending = self._ending or number != signal.SIGINT
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM if number == signal.SIGHUP else number)


def _at_terminal() -> bool:
    """Whether the terminal sends its Ctrl-C to our process group, so to the command too."""
    try:
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    except (OSError, ValueError):
        return False
