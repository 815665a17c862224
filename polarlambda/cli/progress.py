"""Progress on standard error: a live bar in a terminal, plain lines anywhere else."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Protocol

import click


class Progress(Protocol):
    """Shows how far something is; used as a context manager."""

    def update(self, done: float, total: float, text: str, *, important: bool = False) -> None:
        """``done`` of ``total`` units are done; ``text`` is what to show beside that.

        ``important`` is what a log should have, however soon after the last line.
        """
        ...

    def note(self, text: str) -> None:
        """Print a line that stays."""
        ...

    def __enter__(self) -> Progress: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class PlainProgress:
    """A line every ``every`` seconds at most, and one for the end: for logs and pipes."""

    def __init__(self, *, every: float = 2.0) -> None:
        self._every = every
        self._last = -float("inf")

    def update(self, done: float, total: float, text: str, *, important: bool = False) -> None:
        """Print ``text`` when it is due."""
        now = time.monotonic()
        if important or done >= total or now - self._last >= self._every:
            self._last = now
            click.echo(text, err=True)

    def note(self, text: str) -> None:
        """Print a line."""
        click.echo(text, err=True)

    def __enter__(self) -> PlainProgress:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


class BarProgress:
    """rich's bar, with the notes above it."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self._rich = RichProgress(
            BarColumn(bar_width=32),
            TextColumn("{task.description}", markup=False),
            console=Console(stderr=True, highlight=False),
        )
        self._task: Any = None

    def update(self, done: float, total: float, text: str, *, important: bool = False) -> None:
        """Move the bar."""
        if self._task is None:
            self._task = self._rich.add_task(text, total=total)
        self._rich.update(self._task, completed=done, total=total, description=text)

    def note(self, text: str) -> None:
        """Print a line above the bar."""
        self._rich.console.print(text, markup=False, soft_wrap=True)

    def __enter__(self) -> BarProgress:
        self._rich.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._rich.stop()


class Quiet:
    """Shows nothing: for --json."""

    def update(self, done: float, total: float, text: str, *, important: bool = False) -> None:
        """Show nothing."""

    def note(self, text: str) -> None:
        """Show nothing."""

    def __enter__(self) -> Quiet:
        return self

    def __exit__(self, *exception: object) -> None:
        pass


def make_progress(*, quiet: bool = False) -> Progress:
    """The progress display that suits where standard error goes."""
    if quiet:
        return Quiet()
    return BarProgress() if sys.stderr.isatty() else PlainProgress()
