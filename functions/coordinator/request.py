"""The coordinator's versioned event (docs/api.md): start, resume or cancel a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blockstore import keys
from blockstore.documents import Fields
from blockstore.errors import NameRefused

__all__ = [
    "Cancel",
    "Request",
    "RequestRefused",
    "Resume",
    "Start",
    "StartPair",
    "parse_request",
]

VERSION = 1
_FIELDS = {
    "start": {
        "version",
        "matrix",
        "x",
        "until",
        "deadline",
        "run",
        "estimator",
        "metric",
        "relaunch",
        "reference",
        "decode",
        "result",
    },
    "pair": {
        "version",
        "matrix",
        "right",
        "until",
        "deadline",
        "run",
        "estimator",
        "relaunch",
        "decode",
        "result",
    },
    "resume": {"version", "resume"},
    "cancel": {"version", "cancel"},
}


class RequestRefused(ValueError):
    """An event that is no valid request: the message names the field, the rule and the value."""


@dataclass(frozen=True)
class Start:
    """Multiply `matrix` by the array at key `x`, by way of its difference to `reference`'s x."""

    matrix: str
    x: str
    until: str
    deadline: float | None
    run: str | None
    estimator: str = "best"
    metric: str = "vector"
    relaunch: str | None = None
    reference: str | None = None
    decode: str = "local"
    result: str = "npy"


@dataclass(frozen=True)
class StartPair:
    """Multiply `matrix` by the matrix whose transpose is encoded as `right`."""

    matrix: str
    right: str
    until: str
    deadline: float | None
    run: str | None
    estimator: str = "best"
    relaunch: str | None = None
    decode: str = "local"
    result: str = "npy"


@dataclass(frozen=True)
class Resume:
    """Carry on with `run`."""

    run: str


@dataclass(frozen=True)
class Cancel:
    """End `run`."""

    run: str


Request = Start | StartPair | Resume | Cancel


def parse_request(event: Mapping[str, Any]) -> Request:
    """Read and check an event; raises `RequestRefused`.

    {version: 1, matrix, x, until?, deadline?, run?, estimator?, metric?, relaunch?, reference?,
    decode?, result?}, {version: 1, matrix, right, until?, deadline?, run?, estimator?, relaunch?,
    decode?, result?}, {version: 1, resume: run} or {version: 1, cancel: run}; x is a key below
    inputs/, or with that run runs/<run>/x.npy (asked.npy if there is a reference: x.npy is for the
    difference then). A field that is not known is refused: it would be a wish that nobody reads.
    """
    fields = Fields(event, "event", RequestRefused)
    fields.version(VERSION)
    kind = next((name for name in ("resume", "cancel") if name in event), "start")
    kind = "pair" if kind == "start" and "right" in event else kind
    unknown = sorted(set(event) - _FIELDS[kind])
    if unknown:
        known = ", ".join(sorted(_FIELDS[kind]))
        raise RequestRefused(f"event: field {unknown[0]!r} is not known here: use {known}")
    try:
        if kind in ("resume", "cancel"):
            known_run = keys.validate_run(fields.text(kind))
            return Resume(known_run) if kind == "resume" else Cancel(known_run)
        given = event.get("run")
        run = None if given is None else keys.validate_run(given)
        known = event.get("reference")
        reference = None if known is None else keys.validate_run(known)
        matrix = keys.validate_name(fields.text("matrix"))
        right = keys.validate_name(fields.text("right")) if kind == "pair" else ""
    except NameRefused as exc:
        raise RequestRefused(f"event: {exc}") from exc
    until = fields.text("until") if "until" in event else "exact"
    deadline = fields.number_or_none("deadline") if "deadline" in event else None
    estimator = fields.text("estimator") if "estimator" in event else "best"
    relaunch = fields.text_or_none("relaunch") if "relaunch" in event else None
    made = {
        "decode": fields.text("decode") if "decode" in event else "local",
        "result": fields.text("result") if "result" in event else "npy",
    }
    if kind == "pair":
        return StartPair(matrix, right, until, deadline, run, estimator, relaunch, **made)
    x = fields.text("x")
    name = "x.npy" if reference is None else "asked.npy"
    own = keys.x_key if reference is None else keys.asked_key
    if not (x.startswith(keys.INPUTS) or (run is not None and x == own(run))):
        raise fields.fail("x", f"a key below {keys.INPUTS}, or runs/<run>/{name} of the run given")
    metric = fields.text("metric") if "metric" in event else "vector"
    return Start(
        matrix=matrix,
        x=x,
        until=until,
        deadline=deadline,
        run=run,
        estimator=estimator,
        metric=metric,
        relaunch=relaunch,
        reference=reference,
        **made,
    )
