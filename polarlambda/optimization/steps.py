"""From gradients to steps: Adam, and gradient descent with momentum, as pure functions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["GROW", "SHRINK", "Stepper", "bounded", "next_radius"]

FIRST, SECOND, TINY = 0.9, 0.999, 1e-8  # Kingma and Ba, arXiv 1412.6980
GROW, SHRINK = 1.2, 0.5
MOST = 10.0  # radii, in units of the rate


@dataclass(frozen=True)
class Stepper:
    """An optimiser whose memory is an array (rows, p), so that a checkpoint is one array.

    Parameters that a gradient says nothing of (another block's) keep their memory. Rows: sgd has
    the velocity; adam the two moments and the number of steps of each parameter.
    """

    optimizer: str
    rate: float
    momentum: float

    def start(self, parameters: int) -> NDArray[np.float64]:
        """The memory before the first step."""
        return np.zeros((1 if self.optimizer == "sgd" else 3, parameters))

    def step(
        self, memory: NDArray[np.float64], gradient: NDArray[np.float64], places: NDArray[np.intp]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(descent step of the parameters `places`, memory after it)."""
        memory = memory.copy()
        if self.optimizer == "sgd":
            memory[0, places] = self.momentum * memory[0, places] - self.rate * gradient
            return memory[0, places].copy(), memory
        memory[0, places] = FIRST * memory[0, places] + (1 - FIRST) * gradient
        memory[1, places] = SECOND * memory[1, places] + (1 - SECOND) * gradient**2
        memory[2, places] += 1
        mean = memory[0, places] / (1 - FIRST ** memory[2, places])
        square = memory[1, places] / (1 - SECOND ** memory[2, places])
        return -self.rate * mean / (np.sqrt(square) + TINY), memory


def bounded(step: NDArray[np.float64], radius: float) -> NDArray[np.float64]:
    """The step, shortened to an rms of at most `radius`."""
    size = float(np.sqrt(np.mean(step**2)))
    return step if size <= radius else step * (radius / size)


def next_radius(radius: float, rate: float, gain: float, error: float) -> float:
    """The trust radius after the score changed by `gain` (positive is better, `error` its
    standard error): larger after a gain, half after a clear loss."""
    if gain < -2 * error:
        return radius * SHRINK
    return min(radius * GROW, MOST * rate) if gain > 0 else radius
