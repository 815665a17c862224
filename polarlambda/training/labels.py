"""The labels of a training: read them, and refuse them before anything is written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from polarlambda.errors import BadInput
from polarlambda.training.models import Array

if TYPE_CHECKING:
    Labels: TypeAlias = NDArray[Any] | Sequence[Any] | str | os.PathLike[str]


@dataclass(frozen=True)
class Targets:
    """given : the labels (n,) or (n, k) as they came, digest : of them; values : (n, k) float64,
    what a model is trained on; classes : the value that each class has in `given`, None for
    regression."""

    given: NDArray[Any] = field(repr=False)
    digest: str
    values: Array = field(repr=False)
    classes: tuple[float, ...] | None = None


def read_labels(labels: Labels, model: str, samples: int, *, classes: int | None = None) -> Targets:
    """Labels for `samples` rows, as an array, lists, or the path of an .npy file.

    least-squares, ridge : numbers, (n,) or (n, k) for k regressions at once; logistic : (n,) with
    two different values, the larger is class 1; multinomial : (n,) with the integers 0..K-1, each
    at least once; `classes` : K, if it is known, checked for any classifier. Raises `BadInput`.
    """
    from blockstore.arrays import array_digest

    given = _load(labels)
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    wanted = f"({samples},) or ({samples}, k)" if _regression(model) else f"({samples},)"
    allowed = (1, 2) if _regression(model) else (1,)
    if given.ndim not in allowed or len(given) != samples or 0 in given.shape:
        raise BadInput(
            f"labels have shape {given.shape}, but the matrix has {samples} rows: they must have "
            f"shape {wanted} for {model}"
        )
    values = given.reshape(samples, -1).astype(np.float64)
    finite = np.isfinite(values).all(axis=1)
    if not finite.all():
        raise BadInput(
            f"labels must be finite, but that of row {int(np.argmin(finite))} is "
            f"{values[np.argmin(finite)].tolist()}: drop or fill such rows, in the matrix as well"
        )
    kept = np.ascontiguousarray(given, given.dtype.newbyteorder("="))
    digest = array_digest(kept)
    if _regression(model):
        if classes is not None:
            raise BadInput(f"classes are for logistic and multinomial, not for {model}")
        return Targets(kept, digest, values)
    if model == "logistic":
        return _two_classes(kept, digest, values, classes)
    return _several_classes(kept, digest, values, classes)


def _regression(model: str) -> bool:
    return model in ("least-squares", "ridge")


def _two_classes(given: Any, digest: str, values: Array, classes: int | None) -> Targets:
    found = np.unique(values)
    if classes not in (None, 2):
        raise BadInput(f"logistic has two classes, got classes = {classes}: use multinomial")
    if len(found) != 2:
        shown = ", ".join(f"{value:g}" for value in found[:5])
        which = (
            "the other class is missing from the data"
            if len(found) == 1
            else "use multinomial, or make one class of several"
        )
        raise BadInput(
            f"logistic needs labels of two values, got {len(found)} ({shown}"
            f"{', ...' if len(found) > 5 else ''}): {which}"
        )
    return Targets(given, digest, (values == found[1]).astype(np.float64), tuple(found.tolist()))


def _several_classes(given: Any, digest: str, values: Array, classes: int | None) -> Targets:
    column = values[:, 0]
    if (column != np.rint(column)).any() or (column < 0).any():
        bad = int(np.argmax((column != np.rint(column)) | (column < 0)))
        raise BadInput(
            f"multinomial needs labels 0, 1, ..., K-1, but that of row {bad} is {column[bad]:g}: "
            "number the classes"
        )
    count = int(column.max()) + 1 if classes is None else classes
    if classes is not None and column.max() >= classes:
        raise BadInput(
            f"multinomial with {classes} classes needs labels below {classes}, the largest is "
            f"{column.max():g}"
        )
    if count > max(len(column), 2):
        raise BadInput(
            f"multinomial needs labels 0, 1, ..., K-1, but the largest of {len(column)} labels is "
            f"{column.max():g}: number the classes"
        )
    present = np.bincount(column.astype(np.intp), minlength=count) > 0
    if count < 2 or not present.all():
        missing = np.flatnonzero(~present).tolist() or [1]
        shown = ", ".join(map(str, missing[:10]))
        raise BadInput(
            f"every class 0..{max(count, 2) - 1} must occur in the labels, class{_es(missing)} "
            f"{shown} {'does' if len(missing) == 1 else 'do'} not: their weights would run away. "
            "Number the classes that occur from 0 on, without gaps"
        )
    return Targets(
        given, digest, np.eye(count)[column.astype(np.intp)], tuple(map(float, range(count)))
    )


def _es(items: Sequence[Any]) -> str:
    return "" if len(items) == 1 else "es"


def _load(labels: Any) -> NDArray[Any]:
    from blockstore.arrays import check_dtype
    from blockstore.errors import ArrayRefused
    from polarlambda.vectors import load_npy

    if isinstance(labels, np.ma.MaskedArray):
        raise BadInput("labels are masked, and masked entries have no value: use .filled(value)")
    if isinstance(labels, str | os.PathLike):
        return load_npy("labels", labels)
    try:
        array = np.asarray(labels)
        check_dtype(array.dtype)
    except (ArrayRefused, ValueError) as error:
        raise BadInput(f"labels cannot be used: {error}") from error
    return array
