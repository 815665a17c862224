"""One iteration of a training: where it is, what was measured there, what was spent so far."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from polarlambda.training.models import Array


@dataclass(frozen=True)
class Iterate:
    """Everything from which the training can go on, and the line that it adds to the history.

    theta, gradient : (p, k), loss and gradient are those at theta; memory : (m, p, k), what the
    momentum remembers; norm : ||gradient||; first_norm : that of iteration 0; step : step length
    that led here, 0 at the start; tolerance : share of a product's rows that might be missing;
    recovered : the share that was there; exact, error : see `Gradient`; seconds, dollars : since
    the training began; runs : products of this iteration.
    """

    iteration: int
    theta: Array = field(repr=False)
    gradient: Array = field(repr=False)
    memory: Array = field(repr=False)
    loss: float
    norm: float
    first_norm: float
    step: float = 0.0
    tolerance: float = 0.0
    recovered: float = 1.0
    exact: bool = True
    error: float = 0.0
    seconds: float = 0.0
    dollars: float = 0.0
    runs: tuple[str, ...] = ()

    @property
    def finite(self) -> bool:
        """Whether nothing has overflowed."""
        return bool(
            np.isfinite(self.loss)
            and np.isfinite(self.norm)
            and np.isfinite(self.theta).all()
            and np.isfinite(self.memory).all()
        )
