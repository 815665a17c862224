"""What a product returns, and what is known while it runs."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Arrival:
    """How far a run is, given to ``on_arrival`` when answers have arrived or it is decoded.

    run : its id; seconds : since it began; arrivals : answers in, of ``workers`` times
    ``subtasks``; error,
    error_upper : predicted relative error of the estimate, rms and 95 %, None while there is none
    (no answer yet, or an infinite error); state : "running", "decodable" or "exact"; estimate : of
    A x, (n,) or (n, k), only when the coordinator has just made one (`on="local"`).
    """

    run: str
    seconds: float
    arrivals: int
    workers: int
    error: float | None = None
    error_upper: float | None = None
    state: str = "running"
    subtasks: int = 1
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
        bar = f" (95 %: {self.error_upper:.1%})" if self.error_upper is not None else ""
        return f"{text}, error about {self.error:.1%}{bar}"


@dataclass(frozen=True)
class Result:
    """The product, or the best estimate of it.

    value : (n,) for x of shape (d,), else (n, k); None when no answer came. error, error_upper :
    predicted relative error, rms and 95 %; None when there is no estimate. exact : decoded;
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
    rounding: float | None = None
    reference: str | None = None
    verification: str = ""
    subtasks: int = 1
    missing_rows: tuple[tuple[int, int], ...] = ()

    def to_json(self, *, value_path: str | None) -> dict[str, Any]:
        """The fields of ``multiply --json``."""
        return {
            "run": self.run,
            "state": self.state,
            "met": self.met,
            "exact": self.exact,
            "verified": self.verified,
            "method": self.method,
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
            text += f", relative error about {self.error:.1%} (95 %: {_percent(self.error_upper)})"
            text += f" by {self.method}" if self.method else ""
        return f"{text}, run {self.run}"


def finite(value: float | None) -> float | None:
    """``value``, or None for an error that is infinite or not known."""
    return value if value is not None and math.isfinite(value) else None


def _percent(value: float | None) -> str:
    return f"{value:.1%}" if value is not None else "unknown"
