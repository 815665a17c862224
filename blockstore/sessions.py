"""Resident workers: the event that makes one, and the announcements that they look for.

A session is a series of products on one matrix. Its residents each hold one worker's coded blocks
in memory and look at `sessions/<session>/latest.json`, which its coordinator overwrites to announce
a run: one PUT instead of N invocations. Only the newest announcement counts.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from blockstore import documents, keys
from blockstore.bucket import Bucket
from blockstore.documents import Fields
from blockstore.errors import NameRefused, RunRecordError, TaskRefused
from blockstore.tasks import WorkerTask

__all__ = ["SHORT_X", "Announcement", "Asked", "ResidentTask", "announce"]

VERSION = 1
SHORT_X = 64 << 10  # bytes of x that an announcement has in it: many residents read it at a time


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What one worker is asked for in a run: its attempt, and the missing tasks (none: all)."""

    attempt: int
    todo: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Announcement:
    """latest.json: serve this run, or go.

    number : grows with every announcement of the session; sent : when it was made, in seconds on
    the coordinator's clock; attempt : that of every worker which `asked` does not name, None if no
    other is asked; oldest : the generation of a worker's residents below which they are replaced
    and end, `base` for workers that it does not name. x : the .npy body of x if it is short, so
    that residents need not read it from the run; else empty.
    """

    number: int
    sent: float = 0.0
    run: str = ""
    attempt: int | None = None
    x_shape: tuple[int, ...] = ()
    x_dtype: str = ""
    x_digest: str = ""
    x: bytes = field(default=b"", repr=False)
    asked: Mapping[int, Asked] = field(default_factory=dict)
    base: int = 1
    oldest: Mapping[int, int] = field(default_factory=dict)
    ended: bool = False

    def of(self, worker: int) -> Asked | None:
        """What a worker is asked for; None for nothing."""
        if self.ended:
            return None
        everybody = Asked(attempt=self.attempt) if self.attempt is not None else None
        return self.asked.get(worker, everybody)

    def replaced(self, worker: int, generation: int) -> bool:
        """Whether a resident is to end because another one took its place."""
        return generation < self.oldest.get(worker, self.base)

    def to_json(self) -> bytes:
        """The document."""
        record: dict[str, Any] = {"version": VERSION, "number": self.number, "ended": self.ended}
        if not self.ended:
            record |= {
                "sent": self.sent,
                "run": self.run,
                "attempt": self.attempt,
                "x_shape": list(self.x_shape),
                "x_dtype": self.x_dtype,
                "x_digest": self.x_digest,
                "x": base64.b64encode(self.x).decode(),
                "asked": {str(w): [a.attempt, list(a.todo)] for w, a in self.asked.items()},
                "base": self.base,
                "oldest": {str(worker): number for worker, number in self.oldest.items()},
            }
        return json.dumps(record, allow_nan=False, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, body: bytes) -> Announcement:
        """Read and check; raises `RunRecordError` naming the field."""
        what = "latest.json"
        fields = Fields(documents.parse(body, what, RunRecordError), what, RunRecordError)
        fields.version(VERSION)
        number, ended = fields.integer("number", low=1), fields.boolean("ended")
        if ended:
            return cls(number=number, ended=True)
        try:
            asked = {
                int(worker): Asked(attempt=int(attempt), todo=tuple(map(int, todo)))
                for worker, (attempt, todo) in fields.object("asked").items()
            }
            x = base64.b64decode(fields.text("x"), validate=True)
            oldest = {int(w): int(generation) for w, generation in fields.object("oldest").items()}
        except (TypeError, ValueError) as exc:
            raise RunRecordError(f"{what}: asked, oldest or x cannot be read: {exc}") from exc
        return cls(
            number=number,
            sent=fields.number("sent"),
            run=fields.text("run"),
            attempt=fields.integer_or_none("attempt"),
            x_shape=fields.integers("x_shape", low=1),
            x_dtype=fields.text("x_dtype"),
            x_digest=fields.text("x_digest"),
            x=x,
            asked=asked,
            base=fields.integer("base"),
            oldest=oldest,
        )


@dataclass(frozen=True, kw_only=True)
class ResidentTask:
    """What a resident is invoked with: a task of the run that needs it, and the session whose later
    runs it serves with the same blocks.

    generation : number of this worker's resident in the session, from 1; idle_limit : seconds
    without an announcement after which it ends.
    """

    session: str
    generation: int
    idle_limit: float
    work: WorkerTask

    @property
    def worker(self) -> int:
        """Its number."""
        return self.work.worker

    @property
    def attempt(self) -> int:
        """The generation: what tells two invocations for one worker apart."""
        return self.generation

    def task(self, announced: Announcement) -> WorkerTask | None:
        """What an announcement asks this worker for; None for nothing.

        Raises `TaskRefused` if the announced x does not fit the matrix.
        """
        asked = announced.of(self.worker)
        if asked is None:
            return None
        event = replace(self.work, todo=asked.todo).to_event() | {
            "run": announced.run,
            "attempt": asked.attempt,
            "x_shape": list(announced.x_shape),
            "x_dtype": announced.x_dtype,
            "x_digest": announced.x_digest,
        }
        return WorkerTask.from_event(event)

    def to_event(self) -> dict[str, Any]:
        """The JSON object that the worker function is invoked with."""
        return self.work.to_event() | {
            "session": self.session,
            "generation": self.generation,
            "idle_limit": self.idle_limit,
        }

    @classmethod
    def from_event(cls, event: Mapping[str, Any]) -> ResidentTask:
        """Read and check an event; raises `TaskRefused` naming the field and the rule."""
        fields = Fields(event, "resident event", TaskRefused)
        idle_limit = fields.number("idle_limit")
        if not 0 < idle_limit < float("inf"):
            raise fields.fail("idle_limit", "a number of seconds above 0")
        try:
            session = keys.validate_session(fields.text("session"))
        except NameRefused as exc:
            raise TaskRefused(f"resident event: {exc}") from exc
        return cls(
            session=session,
            generation=fields.integer("generation", low=1),
            idle_limit=idle_limit,
            work=WorkerTask.from_event(event),
        )


def announce(bucket: Bucket, session: str, announcement: Announcement) -> None:
    """Overwrite what the residents of a session look at. Cost: one PUT."""
    bucket.put(keys.latest_key(session), announcement.to_json(), content_type="application/json")
