"""What the left-over equations say."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Check"]


@dataclass(frozen=True)
class Check:
    """What the left-over equations of some columns say.

    worst: the largest relative residual; suspect: the place whose equation disagrees most where
    rounding does not explain it, None if it explains all of them. Checks add up: `a + b`.
    """

    worst: float = 0.0
    suspect: int | None = None

    def __add__(self, other: Check) -> Check:
        suspect = self.suspect if self.suspect is not None else other.suspect
        return Check(max(self.worst, other.worst), suspect)
