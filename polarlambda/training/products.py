"""A coded matrix as a function: x -> the rows of A x that are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from polarlambda.training.gradients import NOTHING, ProductFailed, Spent
from polarlambda.training.models import Array

if TYPE_CHECKING:
    from coordinator.events import Event
    from polarlambda.result import Result
    from polarlambda.session_usage import SessionUsage


class Multiplier(Protocol):
    """What products are computed with: a `CodedMatrix`, a session, or something of your own."""

    def multiply(
        self,
        x: Any,
        *,
        until: str = "exact",
        deadline: float | None = None,
        estimator: str = "best",
        reference: str | Result | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> Result:
        """See `CodedMatrix.multiply`."""
        ...


@runtime_checkable
class Billed(Protocol):
    """A session: knows what all its products have used."""

    @property
    def usage(self) -> SessionUsage:
        """See `polarlambda.session.Session.usage`."""
        ...


@dataclass(frozen=True)
class Rows:
    """A x (n, k) float64, zero where it is not known; `known` (n,) says where, None: everywhere."""

    value: Array = field(repr=False)
    known: NDArray[np.bool_] | None = field(default=None, repr=False)
    spent: Spent = NOTHING

    @property
    def share(self) -> float:
        """Share of the rows that are known."""
        return 1.0 if self.known is None else float(self.known.mean())


class Product:
    """Products with one coded matrix.

    deadline : seconds for each, see `CodedMatrix.multiply`; on_event : told of everything that
    happens in a product.
    """

    def __init__(
        self,
        matrix: Multiplier,
        *,
        deadline: float | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> None:
        self._matrix = matrix
        self._billed = 0.0
        self._deadline = deadline
        self._on_event = on_event

    def __call__(self, x: Array, tolerance: float = 0.0) -> Rows:
        """A x for x (d, k): all of it, or all but the share `tolerance` of its rows.

        The rows that are there are exact. Raises `ProductFailed` when a run ends without that.
        """
        until = "exact" if tolerance <= 0 else f"tasks={1 - tolerance:.9g}"
        result = self.run(x, until)
        value, known = np.asarray(result.value, np.float64), None
        if result.missing_rows:
            known = np.ones(len(value), np.bool_)
            for first, last in result.missing_rows:
                known[first:last] = False
        spent = Spent(result.seconds, result.cost or 0.0, (result.run,))
        return Rows(value, known, spent)

    def run(
        self,
        x: Array,
        until: str,
        *,
        estimator: str = "best",
        reference: str | None = None,
        hear: Callable[[Event], None] | None = None,
    ) -> Result:
        """One run; `hear` is told of its events, too. Raises `ProductFailed` as above."""

        def tell(event: Event) -> None:
            for listener in (hear, self._on_event):
                if listener is not None:
                    listener(event)

        heard = hear is not None or self._on_event is not None
        result = self._matrix.multiply(
            x,
            until=until,
            deadline=self._deadline,
            estimator=estimator,
            reference=reference,
            on_event=tell if heard else None,
        )
        if not result.met or result.value is None:
            raise ProductFailed(f"run {result.run}: {result.message}", result.state)
        return self._billed_to(result)

    def _billed_to(self, result: Result) -> Result:
        """The result with all that its product added to the bill: residents also wait."""
        if not isinstance(self._matrix, Billed):
            return result
        before, self._billed = self._billed, self._matrix.usage.dollars
        return replace(result, cost=self._billed - before)
