"""What a run returns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from blockstore.records import ErrorRecord
from coordinator.cost import Usage

__all__ = ["Outcome"]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The end of a run, or of this coordinator's part in it.

    state : "exact", "estimated", "failed", "cancelled", "stopped", or "running" when the time limit
        was near and another coordinator has to resume it
    met : what was asked (`until`) is met
    value : the product or its best estimate, (n,) or (n, k); None without an answer
    exact, verified : decoded; left-over equations were there and hold (`verification` in words)
    error, error_upper : predicted relative error of the value, rms and 95 % bound; inf without one
    seconds : since the run began; phases : where they went, by name
    metric : what the errors are errors of: "vector", the product; "inner", inner products with
        given vectors; absolute : predicted rms of ||value - A x||, or of inner products with
        vectors of norm 1; None without an estimate
    method : the decoder, or the estimator; rounding : predicted relative rms error of an exact
        value by the rounding of answers (`error` is 0 then), None for an estimate
    reference : the exact run whose product was added to that of a difference, None without one
    usage, cost : what the run used, and dollars as `coordinator.cost.Cost.to_json`
    arrivals : verified answers, of `workers` times `subtasks`
    missing_rows : (first, last) of the rows that a run with `tasks=X` ended without, `last` not
        included
    result_key : key of the value in the bucket, None without one
    worker_errors : what workers reported, fatal ones too
    """

    run: str
    state: str
    met: bool
    value: NDArray[Any] | None
    exact: bool
    verified: bool
    verification: str
    error: float
    error_upper: float
    arrivals: int
    workers: int
    seconds: float
    phases: dict[str, float]
    cost: dict[str, Any] | None
    message: str
    result_key: str | None
    method: str = ""
    metric: str = "vector"
    absolute: float | None = None
    rounding: float | None = None
    reference: str | None = None
    subtasks: int = 1
    missing_rows: tuple[tuple[int, int], ...] = ()
    worker_errors: tuple[ErrorRecord, ...] = field(default=())
    usage: Usage = field(default_factory=Usage, compare=False)  # of a finished run: not kept

    def to_json(self) -> dict[str, Any]:
        """What the coordinator function returns: everything but the array; no NaN, no infinity."""
        return {
            "version": 1,
            "run": self.run,
            "state": self.state,
            "met": self.met,
            "exact": self.exact,
            "verified": self.verified,
            "verification": self.verification,
            "method": self.method,
            "metric": self.metric,
            "error_absolute": _finite(self.absolute),
            "rounding": self.rounding,
            "error": _finite(self.error),
            "error_upper": _finite(self.error_upper),
            "reference": self.reference,
            "arrivals": self.arrivals,
            "workers": self.workers,
            "subtasks": self.subtasks,
            "missing_rows": [list(span) for span in self.missing_rows],
            "result": self.result_key,
            "seconds": self.seconds,
            "cost": self.cost,
            "message": self.message,
        }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
