"""What a run is asked to multiply by: checked before anything is written."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.arrays import check_dtype
from blockstore.errors import ArrayRefused, ManifestError
from blockstore.manifest import Manifest

__all__ = ["InputRefused", "MatrixReplaced", "check_deadline", "check_vectors", "check_x"]


class InputRefused(ValueError):
    """x or another argument of a run is not acceptable: the message says which rule it breaks."""


class MatrixReplaced(ManifestError, ValueError):
    """The matrix was encoded anew since the run began: its answers would not fit together."""


def check_x(x: NDArray[Any], manifest: Manifest) -> NDArray[Any]:
    """Return x in native byte order and C order.

    Raises `InputRefused` unless it is a finite real array of shape (d,) or (d, k), k >= 1.
    """
    return _checked("x", x, manifest.columns, f"matrix {manifest.name!r} has", "columns", "k")


def check_vectors(vectors: NDArray[Any], manifest: Manifest) -> NDArray[Any]:
    """Return the vectors C of inner products C^T A x likewise, (n,) or (n, p), none of them zero.

    Raises `InputRefused`.
    """
    checked = _checked(
        "metric", vectors, manifest.rows, f"matrix {manifest.name!r} has", "rows", "p"
    )
    if not np.any(checked.reshape(manifest.rows, -1), axis=0).all():
        raise InputRefused("metric must be vectors with entries that are not 0")
    return checked


def _checked(
    name: str, array: NDArray[Any], length: int, owner: str, what: str, width: str
) -> NDArray[Any]:
    try:
        check_dtype(array.dtype)
    except ArrayRefused as exc:
        raise InputRefused(f"{name}: {exc}") from exc
    if array.ndim not in (1, 2) or array.shape[0] != length or 0 in array.shape:
        raise InputRefused(
            f"{name} has shape {array.shape}, but {owner} {length} {what}: {name} must "
            f"have shape ({length},) or ({length}, {width})"
        )
    finite = np.isfinite(array.reshape(length, -1)).all(axis=1)
    if not finite.all():
        row = int(np.argmin(finite))
        raise InputRefused(f"{name} must be finite, but row {row} has NaN or Inf")
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))


def check_deadline(deadline: Any) -> float | None:
    """Return the deadline in seconds; raises `InputRefused` unless positive and finite."""
    if deadline is None:
        return None
    number = isinstance(deadline, int | float) and not isinstance(deadline, bool)
    if not (number and math.isfinite(deadline) and deadline > 0):
        raise InputRefused(f"deadline must be a positive number of seconds, got {deadline!r}")
    return float(deadline)
