"""Where theta may be, and how large a step is in each of its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarlambda.errors import BadInput

__all__ = ["Domain", "make_domain", "read_start"]


@dataclass(frozen=True)
class Domain:
    """low, high, scale: (p,) float64. Steps and perturbations are in units of `scale`."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    scale: NDArray[np.float64]

    def inside(self, theta: NDArray[np.float64], margin: float) -> NDArray[np.float64]:
        """`theta`, moved so that theta +- margin scale is in the box as well."""
        reach = np.minimum(margin * self.scale, 0.5 * (self.high - self.low))
        return np.clip(theta, self.low + reach, self.high - reach)

    def sigma(self, wanted: float, reach: float) -> float:
        """The largest sigma up to `wanted` for which pairs of points fit into the box; `reach` is
        the largest |entry| of a direction."""
        widths = (self.high - self.low) / self.scale
        return min(wanted, float(widths.min()) / (2 * reach))

    def to_array(self) -> NDArray[np.float64]:
        """(3, p): low, high, scale."""
        return np.stack([self.low, self.high, self.scale])


def read_start(start: Any) -> NDArray[np.float64]:
    """The first theta, (p,) float64, finite. Raises `BadInput`."""
    try:
        theta = np.array(start, dtype=np.float64)
    except (TypeError, ValueError) as exc:
        raise BadInput(f"start must be numbers, one for every parameter: {exc}") from exc
    if theta.ndim != 1 or theta.size == 0:
        raise BadInput(f"start must have shape (p,), got {theta.shape}")
    if not np.isfinite(theta).all():
        raise BadInput(f"start must be finite, got {theta[~np.isfinite(theta)][0]}")
    return theta


def make_domain(theta: NDArray[np.float64], bounds: Any, scale: Any) -> Domain:
    """Box and scale of a start.

    bounds : None, (low, high) for all, or (p, 2); None or infinite where there is no bound
    scale : None, a number or (p,): by default a parameter's box, else the rms of theta, else 1

    Raises `BadInput`, also for a start outside the box.
    """
    low = np.full(theta.size, -np.inf)
    high = np.full(theta.size, np.inf)
    if bounds is not None:
        pairs = _pairs(bounds, theta.size)
        low, high = pairs[:, 0].copy(), pairs[:, 1].copy()
        low[np.isnan(low)], high[np.isnan(high)] = -np.inf, np.inf
        if not (low < high).all():
            worst = int(np.argmax(low >= high))
            raise BadInput(
                f"bounds of parameter {worst} must have low < high, got {low[worst]:g} and "
                f"{high[worst]:g}"
            )
        outside = (theta < low) | (theta > high)
        if outside.any():
            worst = int(np.argmax(outside))
            raise BadInput(
                f"start of parameter {worst}, {theta[worst]:g}, is outside its bounds "
                f"{low[worst]:g} to {high[worst]:g}"
            )
    return Domain(low, high, _scale(theta, high - low, scale))


def _pairs(bounds: Any, parameters: int) -> NDArray[np.float64]:
    try:
        pairs = np.array(bounds, dtype=np.float64)
    except (TypeError, ValueError) as exc:
        raise BadInput(f"bounds must be (low, high) or one such pair a parameter: {exc}") from exc
    if pairs.shape == (2,):
        pairs = np.tile(pairs, (parameters, 1))
    if pairs.shape != (parameters, 2):
        raise BadInput(f"bounds must have shape (2,) or ({parameters}, 2), got {pairs.shape}")
    return pairs


def _scale(
    theta: NDArray[np.float64], widths: NDArray[np.float64], scale: Any
) -> NDArray[np.float64]:
    if scale is not None:
        given = np.broadcast_to(np.asarray(scale, dtype=np.float64), theta.shape).copy()
        if not (np.isfinite(given).all() and (given > 0).all()):
            raise BadInput(f"scale must be above 0 and finite, got {scale!r}")
        return given
    size = float(np.sqrt(np.mean(theta**2))) or 1.0
    return np.where(np.isfinite(widths), widths, size)
