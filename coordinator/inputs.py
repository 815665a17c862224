"""What a run is asked to multiply by: checked before anything is written."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.arrays import check_dtype
from blockstore.errors import ArrayRefused, ManifestError
from blockstore.manifest import Manifest

__all__ = ["InputRefused", "MatrixReplaced", "check_deadline", "check_x"]


class InputRefused(ValueError):
    """x or another argument of a run is not acceptable: the message says which rule it breaks."""


class MatrixReplaced(ManifestError, ValueError):
    """The matrix was encoded anew since the run began: its answers would not fit together."""


def check_x(x: NDArray[Any], manifest: Manifest) -> NDArray[Any]:
    """Return x in native byte order and C order.

    Raises `InputRefused` unless it is a finite real array of shape (d,) or (d, k), k >= 1.
    """
    columns = manifest.columns
    try:
        check_dtype(x.dtype)
    except ArrayRefused as exc:
        raise InputRefused(f"x: {exc}") from exc
    if x.ndim not in (1, 2) or x.shape[0] != columns or 0 in x.shape:
        raise InputRefused(
            f"x has shape {x.shape}, but matrix {manifest.name!r} has {columns} columns: x must "
            f"have shape ({columns},) or ({columns}, k)"
        )
    finite = np.isfinite(x.reshape(columns, -1)).all(axis=1)
    if not finite.all():
        raise InputRefused(f"x must be finite, but row {int(np.argmin(finite))} has NaN or Inf")
    return np.ascontiguousarray(x, dtype=x.dtype.newbyteorder("="))


def check_deadline(deadline: Any) -> float | None:
    """Return the deadline in seconds; raises `InputRefused` unless positive and finite."""
    if deadline is None:
        return None
    number = isinstance(deadline, int | float) and not isinstance(deadline, bool)
    if not (number and math.isfinite(deadline) and deadline > 0):
        raise InputRefused(f"deadline must be a positive number of seconds, got {deadline!r}")
    return float(deadline)
