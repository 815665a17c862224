"""What training needs of whatever computes gradients: two protocols and what they return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from polarlambda.training.models import Array


@dataclass(frozen=True)
class Spent:
    """What products took: `seconds` of wall time, `dollars`, and the ids of their `runs`."""

    seconds: float = 0.0
    dollars: float = 0.0
    runs: tuple[str, ...] = ()

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            self.seconds + other.seconds, self.dollars + other.dollars, self.runs + other.runs
        )


NOTHING = Spent()


@dataclass(frozen=True)
class Gradient:
    """The gradient of the objective at theta, or what stands in for it.

    value : (p, k); loss : the objective at theta, or an estimate of it when the gradient is not
    exact; exact : nothing was left out or estimated; error : predicted relative rms error of the
    value, 0 for an exact one; recovered : the least share of rows that a product was known in.
    """

    value: Array = field(repr=False)
    loss: float
    exact: bool = True
    error: float = 0.0
    recovered: float = 1.0
    spent: Spent = NOTHING


@dataclass(frozen=True)
class Line:
    """The objective along theta + a direction, a >= 0. Looking at it costs no product.

    loss(a), slope(a) : value and derivative in a; move(a) : theta + a direction, (p, k), after
    which the source knows the products at that point.
    """

    loss: Callable[[float], float]
    slope: Callable[[float], float]
    move: Callable[[float], Array]
    spent: Spent = NOTHING


class GradientSource(Protocol):
    """Computes gradients. All that a fixed step needs."""

    @property
    def shape(self) -> tuple[int, int]:
        """(p, k) of theta."""
        ...

    def gradient(self, theta: Array, tolerance: float = 0.0) -> Gradient:
        """The gradient at theta; each product may leave out the share `tolerance` of its rows.

        Raises `ProductFailed` when a product ends without what it was asked for.
        """
        ...


@runtime_checkable
class LineSource(GradientSource, Protocol):
    """Can also look along a line, which a line search needs."""

    def along(self, theta: Array, direction: Array) -> Line:
        """The objective along a direction from theta, whose gradient was computed last.

        Cost: one product, whatever the number of steps then tried.
        """
        ...


class ProductFailed(Exception):
    """A coded product ended without what it was asked for; `state` is that of its run."""

    def __init__(self, message: str, state: str = "failed") -> None:
        super().__init__(message)
        self.state = state
