"""What a coordinator writes down so that another one can carry on: run.json with its dispatches.

Every dispatch is written before it begins and once more when all its invocations were accepted. A
coordinator that died half way leaves it incomplete: those who come after it invoke again, which is
harmless, rather than wait for workers that were perhaps never invoked.

Two coordinators may be at work on one run, because somebody resumed it too early or twice. Every
change is therefore made to run.json as it is in the store, under the condition that nobody wrote it
in between: no other attempt is forgotten, and the first decisive set stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from blockstore import documents, keys
from blockstore.documents import Fields
from blockstore.errors import RunRecordError, StoreUnavailable
from blockstore.records import RunSpec
from blockstore.runs import RunStore

__all__ = ["Dispatch", "Journal", "Spent", "load_journal", "timestamp", "update", "write"]

JSON = "application/json"
UPDATE_ATTEMPTS = 20


@dataclass(frozen=True)
class Dispatch:
    """`workers` were invoked as attempt `attempt`, the last of them `at` seconds since 1970.

    complete: all invocations were accepted or had failed for good by then; relaunch: they were
    slow, and are perhaps still under way in an earlier attempt.
    """

    attempt: int
    workers: tuple[int, ...]
    at: float
    complete: bool = False
    relaunch: bool = False

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Dispatch:
        """Read and check; raises `RunRecordError` naming the field."""
        fields = Fields(data, "run.json: dispatch", RunRecordError)
        return cls(
            attempt=fields.integer("attempt", low=1),
            workers=fields.integers("workers"),
            at=fields.number("at"),
            complete=fields.boolean("complete"),
            relaunch=fields.boolean("relaunch"),
        )


@dataclass(frozen=True)
class Spent:
    """What coordinators that have left the run used: requests, seconds on Lambda, and bytes that
    left AWS."""

    puts: int = 0
    gets: int = 0
    lists: int = 0
    invokes: int = 0
    seconds: float = 0.0
    received: int = 0

    def __add__(self, other: Spent) -> Spent:
        mine, others = asdict(self), asdict(other)
        return Spent(**{name: mine[name] + others[name] for name in mine})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Spent:
        """Read and check; raises `RunRecordError` naming the field."""
        fields = Fields(data, "run.json: spent", RunRecordError)
        return cls(
            puts=fields.integer("puts"),
            gets=fields.integer("gets"),
            lists=fields.integer("lists"),
            invokes=fields.integer("invokes"),
            seconds=fields.number("seconds"),
            received=fields.integer("received") if "received" in data else 0,
        )


@dataclass(frozen=True)
class Journal:
    """run.json: what was asked, the dispatches so far, and what earlier coordinators used.

    fresh: it is not in the store yet, and is to be written with its first dispatch. etag: that of
    run.json with this in it, "" if it is not known.
    """

    spec: RunSpec
    dispatches: tuple[Dispatch, ...] = ()
    spent: Spent = field(default_factory=Spent)
    fresh: bool = field(default=False, compare=False)
    etag: str = field(default="", compare=False)

    @property
    def began(self) -> float:
        """When the run was created, seconds since 1970."""
        return datetime.fromisoformat(self.spec.created).timestamp()

    def dispatching(self, dispatch: Dispatch) -> Journal:
        """The journal with a dispatch that begins, or with the one of that attempt completed."""
        others = tuple(d for d in self.dispatches if d.attempt != dispatch.attempt)
        attempt = max(self.spec.attempt, dispatch.attempt)
        spec = replace(self.spec, attempt=attempt)
        return replace(self, spec=spec, dispatches=(*others, dispatch))

    def deciding(self, decisive: tuple[int, ...]) -> Journal:
        """The journal with the decisive set, or with the one that was stored before."""
        if self.spec.decisive is not None:
            return self
        return replace(self, spec=replace(self.spec, decisive=decisive))

    def spending(self, spent: Spent) -> Journal:
        """The journal with what one more coordinator used."""
        return replace(self, spent=self.spent + spent)

    def to_json(self) -> bytes:
        """The document."""
        dispatches = [asdict(d) for d in self.dispatches]
        record = {**self.spec.to_json(), "dispatches": dispatches, "spent": asdict(self.spent)}
        return documents.dump(record)

    def create(self, store: RunStore) -> Journal | None:
        """Write run.json and return what is there; None if the run has one already."""
        etag = self._put(store, if_none_match=True)
        return replace(self, fresh=False, etag=etag) if etag else None

    def _replace(self, store: RunStore, etag: str) -> Journal | None:
        """Write run.json in the place of the one with this ETag; None if another one is there."""
        new = self._put(store, if_match=etag)
        return replace(self, etag=new) if new else None

    def _put(
        self, store: RunStore, *, if_match: str | None = None, if_none_match: bool = False
    ) -> str:
        return store.bucket.put(
            keys.run_key(store.run),
            self.to_json(),
            if_match=if_match,
            if_none_match=if_none_match,
            content_type=JSON,
        )


def load_journal(store: RunStore) -> Journal:
    """Read run.json; raises `ObjectMissing` if there is no such run, `RunRecordError`."""
    record, etag = store.load_record()
    dispatches = record.get("dispatches", [])
    if not isinstance(dispatches, list):
        raise RunRecordError("run.json: dispatches must be a list")
    spent = Spent.from_json(record["spent"]) if "spent" in record else Spent()
    every = tuple(Dispatch.from_json(d) for d in dispatches)
    return Journal(RunSpec.from_json(record), every, spent, etag=etag)


def update(store: RunStore, change: Callable[[Journal], Journal]) -> Journal:
    """Apply `change` to run.json and return what is in the store then; nobody's write is lost.

    Raises `ObjectMissing` if the run was deleted, `StoreUnavailable` if others write all the time.
    """
    for _ in range(UPDATE_ATTEMPTS):
        journal = load_journal(store)
        changed = change(journal)
        if changed == journal:
            return journal
        if written := changed._replace(store, journal.etag):
            return written
    raise StoreUnavailable(
        f"run.json of run {store.run} was changed by others at each of {UPDATE_ATTEMPTS} attempts "
        "to write it: is the run being resumed again and again?"
    )


def write(store: RunStore, journal: Journal, change: Callable[[Journal], Journal]) -> Journal:
    """`update`, or the first writing of a fresh journal.

    What this coordinator wrote or read last is not read again unless somebody wrote since. It may
    have added to `journal` since; what it added is written, too.
    """
    if journal.fresh:
        first = change(journal)
        created = first.create(store) or load_journal(store)  # our own PUT may be sent twice
        if created != first:
            raise RunRecordError(f"there is a run {store.run} already: its id was drawn twice")
        return created
    written = change(journal)._replace(store, journal.etag) if journal.etag else None
    return written or update(store, change)


def timestamp(now: float) -> str:
    """ISO 8601 in UTC, to the microsecond."""
    return datetime.fromtimestamp(now, UTC).isoformat()
