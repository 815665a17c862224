"""The right-hand side x of a product: read it, and refuse it before anything is written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from polarlambda.errors import BadInput

if TYPE_CHECKING:
    import numpy as np

    from blockstore.manifest import Manifest
    from polarlambda.result import Result

    Vector: TypeAlias = np.ndarray[Any, Any] | Sequence[Any] | str | os.PathLike[str]


def read_vector(x: Vector, manifest: Manifest) -> np.ndarray[Any, Any]:
    """``x`` as a native, C-contiguous array of shape (d,), (d, 1) or (d, k).

    ``x`` is an array, nested lists of numbers, or the path of an .npy file; d is the number of
    columns of the matrix. bool, integers and float16/32/64 are accepted. Raises `BadInput` for a
    file that is not a whole .npy file or lists of different lengths, `InputRefused` for a wrong
    length, no columns, NaN or Inf, complex, object, text or structured values.
    Cost: one copy of x at most, and one pass over it.
    """
    from coordinator.inputs import check_x

    return check_x(_read("x", x), manifest)


def read_metric(vectors: Vector, manifest: Manifest) -> np.ndarray[Any, Any]:
    """The vectors C of inner products C^T A x, (n,) or (n, p), read and refused as x is."""
    from coordinator.inputs import check_vectors

    return check_vectors(_read("metric", vectors), manifest)


def _read(name: str, values: Vector) -> np.ndarray[Any, Any]:
    if isinstance(values, str | os.PathLike):
        return load_npy(name, values)
    return _convert(name, values)


def refer_to(reference: str | Result | None) -> str | None:
    """The run id of a product to take differences to, which must be exact.

    Whether there is such a run, on the same matrix and for an x of the same shape, is asked of the
    bucket later. Raises `BadInput`, `NameRefused`.
    """
    from blockstore.keys import validate_run
    from polarlambda.result import Result

    if reference is None:
        return None
    if isinstance(reference, Result):
        if not reference.exact:
            raise BadInput(
                f"reference is the {reference.state} product of run {reference.run}, not an exact "
                "one: errors of estimates would add up. Refer to an exact product"
            )
        return reference.run
    if not isinstance(reference, str):
        raise BadInput(f"reference must be a run id or a Result, got {type(reference).__name__}")
    return validate_run(reference)


def load_npy(name: str, path: str | os.PathLike[str]) -> np.ndarray[Any, Any]:
    """The array of an .npy file, real numbers only; `BadInput` that says what ``name`` is read
    from."""
    from pathlib import Path

    from blockstore.arrays import decode_array
    from blockstore.errors import ArrayRefused, CorruptObject

    try:
        return decode_array(Path(path).read_bytes())
    except OSError as error:
        raise BadInput(f"{name} cannot be read from {os.fspath(path)}: {error.strerror}") from error
    except (ArrayRefused, CorruptObject) as error:
        raise BadInput(f"{name} cannot be read from {os.fspath(path)}: {error}") from error


def _convert(name: str, x: Any) -> np.ndarray[Any, Any]:
    import numpy as np

    if isinstance(x, np.ma.MaskedArray):
        raise BadInput(
            f"{name} is masked, and masked entries have no value: use {name}.filled(value) first"
        )
    try:
        return np.asarray(x)
    except ValueError as error:  # lists of different lengths
        raise BadInput(f"{name} is not a rectangular array of numbers: {error}") from error
