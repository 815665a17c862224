"""The right-hand side x of a product: read it, and refuse it before anything is written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from polarlambda.errors import BadInput

if TYPE_CHECKING:
    import numpy as np

    Vector: TypeAlias = np.ndarray[Any, Any] | Sequence[Any] | str | os.PathLike[str]


def read_vector(x: Vector, *, columns: int, matrix: str) -> np.ndarray[Any, Any]:
    """``x`` as a native, C-contiguous array of shape (d,), (d, 1) or (d, k).

    Parameters: ``x`` an array, nested lists of numbers, or the path of an .npy file; ``columns``
    the d of the matrix called ``matrix``. bool, integers and float16/32/64 are accepted.
    Raises `BadInput` for anything else: wrong length, no columns, NaN or Inf (the first row is
    named), complex, object, text or structured values, a file that is not a whole .npy file.
    Cost: one copy of x at most, and one pass over it.
    """
    import numpy as np

    from blockstore.arrays import check_dtype
    from blockstore.errors import ArrayRefused

    array = _load(x) if isinstance(x, str | os.PathLike) else _convert(x)
    try:
        check_dtype(array.dtype)
    except ArrayRefused as error:
        raise BadInput(f"x: {error}") from error
    if array.ndim not in (1, 2) or array.shape[0] != columns or 0 in array.shape:
        raise BadInput(
            f"x has shape {array.shape}, but matrix {matrix!r} has {columns} columns: "
            f"x must have shape ({columns},), ({columns}, 1) or ({columns}, k)"
        )
    finite = np.isfinite(array)
    if not finite.all():
        row = int(np.flatnonzero(~finite.reshape(columns, -1).all(axis=1))[0])
        value = array[row][~finite[row]][0] if array.ndim == 2 else array[row]
        raise BadInput(f"x must be finite, but row {row} holds {value}")
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))


def _load(path: str | os.PathLike[str]) -> np.ndarray[Any, Any]:
    from pathlib import Path

    from blockstore.arrays import decode_array
    from blockstore.errors import ArrayRefused, CorruptObject

    try:
        return decode_array(Path(path).read_bytes())
    except OSError as error:
        raise BadInput(f"x cannot be read from {os.fspath(path)}: {error.strerror}") from error
    except (ArrayRefused, CorruptObject) as error:
        raise BadInput(f"x cannot be read from {os.fspath(path)}: {error}") from error


def _convert(x: Any) -> np.ndarray[Any, Any]:
    import numpy as np

    try:
        return np.asarray(x)
    except ValueError as error:  # lists of different lengths
        raise BadInput(f"x is not a rectangular array of numbers: {error}") from error
