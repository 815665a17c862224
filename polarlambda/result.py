"""What a product returns, and what is known while it runs."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coordinator.wording import describe_error
from polarlambda.errors import BadInput

if TYPE_CHECKING:
    import numpy as np

    from blockstore.products import StoredProduct

_HELD = "_held"  # where a result keeps its value, or where that lies


@dataclass(frozen=True)
class Arrival:
    """How far a run is, given to ``on_arrival`` when answers have arrived or it is decoded.

    run : its id; seconds : since it began; arrivals : answers in, of ``workers`` times
    ``subtasks``; error, error_upper : predicted relative error of the estimate in ``metric``, rms
    and 95 %, None while there is none (no answer yet, or an infinite error); state : "running",
    "decodable" or "exact"; estimate : of A x, (n,) or (n, k), only when the coordinator has just
    made one (`on="local"`).
    """

    run: str
    seconds: float
    arrivals: int
    workers: int
    error: float | None = None
    error_upper: float | None = None
    state: str = "running"
    subtasks: int = 1
    metric: str = "vector"
    estimate: np.ndarray[Any, Any] | None = field(default=None, repr=False)

    @property
    def answers(self) -> int:
        """Answers that there are when everybody has given all of its."""
        return self.workers * self.subtasks

    def __str__(self) -> str:
        text = f"{self.seconds:6.1f} s  {self.arrivals} of {self.answers} answers"
        if self.state != "running":
            return f"{text}, {self.state}"
        if self.error is None:
            return text
        return f"{text}, {describe_error(self.error, self.error_upper, self.metric)}"


@dataclass(frozen=True)
class Result:
    """The product, or the best estimate of it.

    value : (n,) for x of shape (d,), else (n, k); None when no answer came. One that was left in
    the bucket is read when it is first looked at. error, error_upper :
    predicted relative error, rms and 95 %; None when there is no estimate. exact : decoded;
    metric : what the errors are errors of: "vector", A x relative to its norm; "inner", inner
    products C^T A x relative to ||C|| ||A x||, which `products` has, (p, k) less the axes that C
    and x lack, with `products_error` the predicted rms of ||products - C^T A x||; absolute : the
    same of ||value - A x||, or of inner products with vectors of norm 1.
    verified : the left-over equations of the code agree, `verification` in words. method : the
    decoder, or the estimator; rounding : predicted relative rms error of an exact value, whose
    ``error`` is 0. reference : the exact run whose product was added to that of the difference of
    the two x, None without one. met : what was asked (``until``) is met.
    arrivals : answers in, of ``workers`` times ``subtasks``. missing_rows : (first, last) of the
    ranges of rows that a run until "tasks=X" ended without, ``last`` not included: zero in value.
    seconds : since the run began; cost : dollars in all; bill : the lines of the cost, as
    `coordinator.cost.Cost.to_json` has them.
    """

    run: str
    state: str
    value: np.ndarray[Any, Any] | None = field(repr=False)
    exact: bool
    verified: bool
    met: bool
    arrivals: int
    workers: int
    error: float | None
    error_upper: float | None
    seconds: float
    cost: float | None
    bill: dict[str, Any] | None = field(repr=False)
    message: str
    method: str = ""
    metric: str = "vector"
    absolute: float | None = None
    products: np.ndarray[Any, Any] | None = field(default=None, repr=False)
    products_error: float | None = None
    rounding: float | None = None
    reference: str | None = None
    verification: str = ""
    subtasks: int = 1
    missing_rows: tuple[tuple[int, int], ...] = ()

    @property
    def stored(self) -> StoredProduct | None:
        """Where the value lies in the bucket while it was not read, else None."""
        held = self.__dict__[_HELD]
        return held if hasattr(held, "load") else None

    @property
    def has_value(self) -> bool:
        """There is a value, here or in the bucket; asking does not read it."""
        return self.__dict__[_HELD] is not None

    def download(self, path: str | os.PathLike[str]) -> Path:
        """Write the value to ``path``, a Zarr array if its name ends in ``.zarr``, else .npy.

        A value in the bucket is copied some rows at a time, never held. The file is there whole or
        not at all. Raises `BadInput` where there is no value, `StoreError`, `OSError`.
        """
        from polarlambda.download import write_product

        held = self.stored
        if held is None and self.value is None:
            raise BadInput(f"run {self.run} ended without an answer: there is nothing to download")
        return write_product(Path(path), held if held is not None else self.value)

    def against(self, vectors: np.ndarray[Any, Any]) -> Result:
        """The same with `products` = C^T value for the vectors C, (n,) or (n, p)."""
        import numpy as np

        if self.value is None:
            return self
        wide = vectors.astype(np.float64)
        size = float(np.linalg.norm(wide))
        error = 0.0 if self.exact else None if self.absolute is None else size * self.absolute
        products = np.asarray(wide.T @ self.value.astype(np.float64))
        return replace(self, products=products, products_error=error)

    def to_json(self, *, value_path: str | None) -> dict[str, Any]:
        """The fields of ``multiply --json``."""
        return {
            "run": self.run,
            "state": self.state,
            "met": self.met,
            "exact": self.exact,
            "verified": self.verified,
            "method": self.method,
            "metric": self.metric,
            "products": None if self.products is None else self.products.tolist(),
            "products_error": self.products_error,
            "rounding": self.rounding,
            "reference": self.reference,
            "arrivals": self.arrivals,
            "workers": self.workers,
            "subtasks": self.subtasks,
            "missing_rows": [list(span) for span in self.missing_rows],
            "error": self.error,
            "error_upper": self.error_upper,
            "value_path": value_path,
            "seconds": self.seconds,
            "cost": self.cost,
            "message": self.message,
        }

    def __str__(self) -> str:
        answers = self.workers * self.subtasks
        text = f"{self.state} after {self.seconds:.2f} s, {self.arrivals} of {answers} answers"
        if self.exact:
            checked = "checked against the left-over equations"
            text += f", {checked if self.verified else self.verification}"
        elif self.missing_rows:
            spans = ", ".join(f"{first}..{last - 1}" for first, last in self.missing_rows)
            text += f", without rows {spans}"
        elif self.error is not None:
            text += f", {describe_error(self.error, self.error_upper, self.metric)}"
            text += f" by {self.method}" if self.method else ""
        return f"{text}, run {self.run}"


class _Value:
    """`Result.value`: an array, or one that is read from the bucket when it is first looked at."""

    def __get__(self, result: Result | None, owner: type[Result]) -> Any:
        if result is None:
            return self
        held = result.stored
        if held is not None:
            result.__dict__[_HELD] = held.load()
        return result.__dict__[_HELD]

    def __set__(self, result: Result, value: Any) -> None:
        result.__dict__[_HELD] = value


Result.value = _Value()  # type: ignore[assignment]  # what the dataclass's __init__ sets goes there


def finite(value: float | None) -> float | None:
    """``value``, or None for an error that is infinite or not known."""
    return value if value is not None and math.isfinite(value) else None
