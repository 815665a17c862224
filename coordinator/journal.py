"""What a coordinator writes down so that another one can carry on: run.json with its dispatches.

Every dispatch is written before it begins and once more when all its invocations were accepted. A
coordinator that died half way leaves it incomplete: those who come after it invoke again, which is
harmless, rather than wait for workers that were perhaps never invoked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from blockstore import documents, keys
from blockstore.documents import Fields
from blockstore.errors import RunRecordError
from blockstore.records import RunSpec
from blockstore.runs import RunStore

__all__ = ["Dispatch", "Journal", "load_journal", "timestamp"]


@dataclass(frozen=True)
class Dispatch:
    """`workers` were invoked as attempt `attempt`, the last of them `at` seconds since 1970.

    complete: all invocations were accepted or had failed for good by then.
    """

    attempt: int
    workers: tuple[int, ...]
    at: float
    complete: bool = False

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Dispatch:
        """Read and check; raises `RunRecordError` naming the field."""
        fields = Fields(data, "run.json: dispatch", RunRecordError)
        return cls(
            attempt=fields.integer("attempt", low=1),
            workers=fields.integers("workers"),
            at=fields.number("at"),
            complete=fields.boolean("complete"),
        )


@dataclass(frozen=True)
class Journal:
    """run.json: what was asked, and the dispatches so far."""

    spec: RunSpec
    dispatches: tuple[Dispatch, ...] = ()

    @property
    def began(self) -> float:
        """When the run was created, seconds since 1970."""
        return datetime.fromisoformat(self.spec.created).timestamp()

    def dispatching(self, dispatch: Dispatch) -> Journal:
        """The journal with a dispatch that begins, or with the one of that attempt completed."""
        others = tuple(d for d in self.dispatches if d.attempt != dispatch.attempt)
        attempt = max(self.spec.attempt, dispatch.attempt)
        return Journal(replace(self.spec, attempt=attempt), (*others, dispatch))

    def deciding(self, decisive: tuple[int, ...]) -> Journal:
        """The journal with the decisive set."""
        return replace(self, spec=replace(self.spec, decisive=decisive))

    def save(self, store: RunStore, *, first: bool = False) -> bool:
        """Write run.json; with `first` only if there is none yet, else False."""
        record = {**self.spec.to_json(), "dispatches": [asdict(d) for d in self.dispatches]}
        body = documents.dump(record)
        return store.bucket.put(
            keys.run_key(store.run), body, if_none_match=first, content_type="application/json"
        )


def load_journal(store: RunStore) -> Journal:
    """Read run.json; raises `ObjectMissing` if there is no such run, `RunRecordError`."""
    spec = store.load_spec()
    record = documents.parse(store.bucket.get(keys.run_key(store.run)), "run.json", RunRecordError)
    dispatches = record.get("dispatches", [])
    if not isinstance(dispatches, list):
        raise RunRecordError("run.json: dispatches must be a list")
    return Journal(spec, tuple(Dispatch.from_json(d) for d in dispatches))


def timestamp(now: float) -> str:
    """ISO 8601 in UTC, to the microsecond."""
    return datetime.fromtimestamp(now, UTC).isoformat()
