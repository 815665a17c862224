"""The JSON records of a run: what was asked (run.json), how far it is (status.json), and what
a worker says went wrong (errors/...)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from blockstore import keys
from blockstore.documents import Fields
from blockstore.errors import NameRefused, RunRecordError

VERSION = 1
STATES = (
    "planned",
    "running",
    "decoding",
    "exact",
    "estimated",
    "failed",
    "cancelled",
    "stopped",
)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """What was asked: run.json.

    until : "exact", "error=0.1" or "seconds=5"; deadline : seconds from the first invoke, None for
    the default; attempt : number of the latest attempt, from 1; subtasks : tasks of each worker;
    decisive : the places in the code of the answers from which the result is decoded, in order,
    once that is decided (it depends on them alone). A place is the worker's number where each
    worker has one task. estimator : which estimate is published before that; metric : what its
    error is that of; relaunch : when slow workers are invoked once more, None for never.
    reference : the exact run whose product is added to that of the difference, which is what
    x_shape, x_dtype and x_digest are about; None if x.npy is the x that was asked for. decode :
    where the product is decoded; result : the kind of array it is written as. right : the encoding
    of B^T in a product of two encoded matrices (`blockstore.pairs`), which has no x.npy: x is B,
    manifest_digest and encoding are the pair's; None for a product by x.npy.
    """

    run: str
    created: str
    matrix: str
    manifest_digest: str
    encoding: str
    workers: int
    x_shape: tuple[int, ...]
    x_dtype: str
    x_digest: str
    until: str
    deadline: float | None
    attempt: int = 1
    subtasks: int = 1
    decisive: tuple[int, ...] | None = None
    estimator: str = "best"
    metric: str = "vector"
    relaunch: str | None = None
    reference: str | None = None
    right: str | None = None
    decode: str = "local"
    result: str = "npy"
    version: int = VERSION

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunSpec:
        """Read and check; raises `RunRecordError` naming the field."""
        fields = Fields(data, "run.json", RunRecordError)
        version = fields.version(VERSION)
        workers = fields.integer("workers", low=1)
        subtasks = fields.integer("subtasks", low=1)
        decisive = fields.integers_or_none("decisive")
        if decisive is not None and any(place >= workers * subtasks for place in decisive):
            raise fields.fail("decisive", f"places below {workers * subtasks}")
        try:
            run = keys.validate_run(fields.text("run"))
        except NameRefused as exc:
            raise RunRecordError(f"run.json: {exc}") from exc
        return cls(
            version=version,
            run=run,
            created=fields.text("created"),
            matrix=fields.text("matrix"),
            manifest_digest=fields.text("manifest_digest"),
            encoding=fields.text("encoding"),
            workers=workers,
            x_shape=fields.integers("x_shape", low=1),
            x_dtype=fields.text("x_dtype"),
            x_digest=fields.text("x_digest"),
            until=fields.text("until"),
            deadline=fields.number_or_none("deadline"),
            attempt=fields.integer("attempt", low=1),
            subtasks=subtasks,
            decisive=decisive,
            estimator=fields.text("estimator"),
            metric=fields.text("metric"),
            relaunch=fields.text_or_none("relaunch"),
            reference=fields.text_or_none("reference"),
            right=fields.text_or_none("right"),
            decode=fields.choice("decode", ("local", "lambda")),
            result=fields.choice("result", ("npy", "zarr")),
        )


@dataclass(frozen=True, kw_only=True)
class RunStatus:
    """How far a run is: status.json, overwritten while it runs.

    state : one of `STATES`; error, error_upper : predicted relative error, rms and 95 %, None while
    there is none; exact, verified : whether the result is decoded, and left-over equations agree;
    seconds : since the run began; cost : dollars so far, by kind; method : the decoder of an exact
    result, or the estimator; metric : what errors are errors of, "vector" (the product) or "inner"
    (inner products with given vectors); rounding : predicted relative rms error of an exact result;
    subtasks : answers that each worker gives, so that `arrivals` is at most workers times subtasks.
    """

    run: str
    state: str
    arrivals: int
    workers: int
    error: float | None = None
    error_upper: float | None = None
    exact: bool = False
    verified: bool = False
    seconds: float = 0.0
    attempt: int = 1
    message: str = ""
    cost: dict[str, Any] | None = None
    method: str = ""
    metric: str = "vector"
    rounding: float | None = None
    subtasks: int = 1
    version: int = VERSION

    @property
    def answers(self) -> int:
        """Answers that there are when everybody has given all of its."""
        return self.workers * self.subtasks

    def to_json(self) -> dict[str, Any]:
        """The record; an infinite error is None, because JSON has no infinity."""
        record = asdict(self)
        record["error"] = _finite(self.error)
        record["error_upper"] = _finite(self.error_upper)
        return record

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunStatus:
        """Read and check; raises `RunRecordError` naming the field."""
        fields = Fields(data, "status.json", RunRecordError)
        return cls(
            version=fields.version(VERSION),
            run=fields.text("run"),
            state=fields.choice("state", STATES),
            arrivals=fields.integer("arrivals"),
            workers=fields.integer("workers", low=1),
            error=fields.number_or_none("error"),
            error_upper=fields.number_or_none("error_upper"),
            exact=fields.boolean("exact"),
            verified=fields.boolean("verified"),
            seconds=fields.number("seconds"),
            attempt=fields.integer("attempt", low=1),
            message=fields.text("message"),
            cost=fields.object_or_none("cost"),
            method=fields.text("method"),
            metric=fields.text("metric"),
            rounding=fields.number_or_none("rounding"),
            subtasks=fields.integer("subtasks", low=1),
        )


@dataclass(frozen=True, kw_only=True)
class ErrorRecord:
    """What went wrong in a worker: errors/<worker>.<attempt>.json.

    type : the exception's class; where : the step it happened in; fatal : whether every other
    attempt would fail in the same way (denied, wrong shape, NaN), so that the run should say so
    rather than count an erasure.
    """

    worker: int
    attempt: int
    type: str
    message: str
    where: str
    fatal: bool
    version: int = VERSION

    def to_json(self) -> dict[str, Any]:
        """The record as a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ErrorRecord:
        """Read and check; raises `RunRecordError` naming the field."""
        fields = Fields(data, "error record", RunRecordError)
        return cls(
            version=fields.version(VERSION),
            worker=fields.integer("worker"),
            attempt=fields.integer("attempt"),
            type=fields.text("type"),
            message=fields.text("message"),
            where=fields.text("where"),
            fatal=fields.boolean("fatal"),
        )
