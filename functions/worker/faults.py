"""What can go wrong in a worker, and which of it another attempt or the code can make up for."""

from __future__ import annotations

from blockstore.errors import (
    AccessDenied,
    ArrayRefused,
    BucketMissing,
    CorruptObject,
    CredentialsMissing,
    ObjectMissing,
    StoreUnavailable,
)

__all__ = [
    "NotFinite",
    "OutOfTime",
    "RunStopped",
    "TileMissing",
    "WorkerError",
    "WrongInput",
    "WrongShape",
    "is_fatal",
]


class WorkerError(Exception):
    """Base of a worker's own errors."""


class RunStopped(WorkerError):
    """The run's stop marker is there: not an error, nothing is to be done."""


class OutOfTime(WorkerError):
    """The platform's time limit is near."""


class TileMissing(WorkerError):
    """A coded tile is not in the bucket: an erasure, the code makes up for it."""


class WrongInput(WorkerError):
    """x is not the vector that the run is about."""


class WrongShape(WorkerError):
    """A tile has another shape or dtype than the manifest says."""


class NotFinite(WorkerError):
    """The product has NaN or Inf."""


_ERASURES = (
    OutOfTime,
    TileMissing,
    StoreUnavailable,
    CorruptObject,
    ArrayRefused,
    MemoryError,
    OSError,
)
_DENIED = (AccessDenied, BucketMissing, CredentialsMissing, ObjectMissing)


def is_fatal(exc: BaseException) -> bool:
    """True if every other attempt would fail in the same way.

    Time, memory, an S3 that is out of service and a damaged or missing tile are erasures, with
    their text kept. A permission, a wrong shape, NaN, or an error nobody thought of is an error
    of the run.
    """
    return isinstance(exc, _DENIED) or not isinstance(exc, _ERASURES)
