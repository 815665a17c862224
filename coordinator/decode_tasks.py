"""What a decode function is asked to do: a range of the windows or parts of one decoding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from blockstore import keys
from blockstore.documents import Fields
from blockstore.errors import NameRefused, TaskRefused

__all__ = ["STAGES", "DecodeTask"]

VERSION = 1
STAGES = ("window", "part")


@dataclass(frozen=True)
class DecodeTask:
    """Range `worker` of a stage: its windows or parts `first` to `last`, `last` not included.

    The range's number is called worker because invokers tell what became of an invocation by it.
    """

    run: str
    decoding: str
    stage: str
    worker: int
    first: int
    last: int
    attempt: int

    def to_event(self) -> dict[str, Any]:
        """The task as the JSON object that the function is invoked with."""
        return {
            "version": VERSION,
            "run": self.run,
            "decoding": self.decoding,
            "stage": self.stage,
            "number": self.worker,
            "first": self.first,
            "last": self.last,
            "attempt": self.attempt,
        }

    @classmethod
    def from_event(cls, event: Mapping[str, Any]) -> DecodeTask:
        """Read and check an event; raises `TaskRefused` naming the field and the rule."""
        fields = Fields(event, "decode event", TaskRefused)
        fields.version(VERSION)
        first = fields.integer("first")
        try:
            run = keys.validate_run(fields.text("run"))
            decoding = keys.validate_encoding(fields.text("decoding"))
        except NameRefused as exc:
            raise TaskRefused(f"decode event: {exc}") from exc
        return cls(
            run=run,
            decoding=decoding,
            stage=fields.choice("stage", STAGES),
            worker=fields.integer("number"),
            first=first,
            last=fields.integer("last", low=first + 1),
            attempt=fields.integer("attempt", low=1),
        )
