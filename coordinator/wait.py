"""What a round of evaluations waits for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["Wait", "WaitRefused", "parse_wait"]

_FORMS = "decodable, all, share=0.8 or seconds=5"


class WaitRefused(ValueError):
    """Not a condition to wait for."""


@dataclass(frozen=True)
class Wait:
    """kind: "decodable" (the values determine the gradient), "all", "share" (`bound` of the
    evaluations have come) or "seconds" (`bound` seconds are over and one value has come)."""

    kind: str
    bound: float = 0.0

    def __str__(self) -> str:
        return f"{self.kind}={self.bound:g}" if self.kind in ("share", "seconds") else self.kind

    def met(
        self,
        arrived: Sequence[int],
        everyone: int,
        seconds: float,
        decodable: Callable[[Sequence[int]], bool],
    ) -> bool:
        """Whether enough has come."""
        if not arrived:
            return False
        if self.kind == "all":
            return len(arrived) == everyone
        if self.kind == "share":
            return len(arrived) >= self.bound * everyone
        if self.kind == "seconds":
            return seconds >= self.bound or len(arrived) == everyone
        return decodable(arrived)


def parse_wait(text: str) -> Wait:
    """Read a condition; raises `WaitRefused` naming the forms."""
    kind, separator, number = text.partition("=")
    if text in ("decodable", "all"):
        return Wait(text)
    if kind not in ("share", "seconds") or not separator:
        raise WaitRefused(f"wait must be {_FORMS}, got {text!r}")
    try:
        bound = float(number)
    except ValueError:
        raise WaitRefused(f"wait must be {_FORMS}, got {text!r}") from None
    if kind == "share" and not 0 < bound <= 1:
        raise WaitRefused(f"wait share=X takes a share in (0, 1], got {number}")
    if kind == "seconds" and not 0 < bound < float("inf"):
        raise WaitRefused(f"wait seconds=X takes a time above 0, got {number}")
    return Wait(kind, bound)
