"""How many rows of a product may be missing, iteration by iteration."""

from __future__ import annotations

from dataclasses import dataclass

from polarlambda.errors import BadInput


@dataclass(frozen=True)
class Tolerance:
    """tolerance_t = share * tighten^t; 0 once it is below `floor`.

    share : in [0, 1), 0 for exact gradients; tighten : in (0, 1], 1 keeps it constant. Far from the
    minimum a gradient without some rows does as well; near it the missing ones are what is left
    (arXiv 1811.09271, section V). Raises `BadInput`.
    """

    share: float = 0.0
    tighten: float = 1.0
    floor: float = 1e-3

    def __post_init__(self) -> None:
        if not 0 <= self.share < 1:
            raise BadInput(
                f"tolerance must be in [0, 1), the share of a gradient's rows that may be missing, "
                f"got {self.share!r}"
            )
        if not 0 < self.tighten <= 1:
            raise BadInput(
                f"tighten must be in (0, 1], the factor of the tolerance from one iteration to the "
                f"next, got {self.tighten!r}"
            )

    def at(self, iteration: int) -> float:
        """The tolerance of an iteration."""
        share = self.share * self.tighten**iteration
        return share if share >= self.floor else 0.0


EXACT = Tolerance()
