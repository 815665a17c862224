"""When answers come: what the latest products foretell of the next one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from coordinator import events

REMEMBERED = 10  # products


class ArrivalTimes:
    """Seconds at which the first, second, ... answer came, over the latest products."""

    def __init__(self) -> None:
        self._products: list[list[float]] = []
        self._tail = 0.0

    def begin(self) -> Callable[[events.Event], None]:
        """For `on_event` of a new product."""
        times: list[float] = []
        self._products = [*self._products[1 - REMEMBERED :], times]

        def hear(event: events.Event) -> None:
            if isinstance(event, events.Arrived):
                times.append(event.t)

        return hear

    def end(self, seconds: float) -> None:
        """The product took so long in all; what comes after its last answer comes after any."""
        last = self._products[-1]
        if last:
            self._tail = max(0.0, seconds - last[-1])

    def forecast(self, most: int) -> list[float]:
        """Mean seconds of a product that ends at 1, 2, ... `most` answers; as far as they came."""
        costs: list[float] = []
        for m in range(most):
            known = [times[m] for times in self._products if len(times) > m]
            if not known:
                break
            costs.append(max(float(np.mean(known)) + self._tail, costs[-1] if costs else 0.0))
        return costs
