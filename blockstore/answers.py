"""What a worker says of its answer: the user metadata of results/<worker>.npy.

S3 keeps it as text, and another program may have written it; a damaged figure is read as unknown
rather than as an error, because only `x_digest` and `encoding` decide whether an answer counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

__all__ = ["AnswerMetadata"]


@dataclass(frozen=True, kw_only=True)
class AnswerMetadata:
    """Digests of what was multiplied, and figures for the report.

    seconds_read is time spent waiting for tiles, seconds_multiply time in the product,
    seconds_total the whole task; peak_memory in bytes; scale is the rms over the block's rows of
    ||row|| ||x||, by which rounding in the product is judged (the product itself may cancel);
    finite: the worker has looked at every entry; polls: a resident worker's looks for an
    announcement since its last answer; looks: for the stop marker, which are LIST requests.
    """

    x_digest: str
    encoding: str
    attempt: int = 0
    cold: bool = False
    seconds_read: float = 0.0
    seconds_multiply: float = 0.0
    seconds_total: float = 0.0
    peak_memory: int = 0
    scale: float = 0.0
    polls: int = 0
    looks: float = 0.0
    finite: bool = False

    def share(self, count: int) -> AnswerMetadata:
        """The figures of one of `count` answers that share an object, seconds and looks shared."""
        if count == 1:
            return self
        return replace(
            self,
            seconds_read=self.seconds_read / count,
            seconds_multiply=self.seconds_multiply / count,
            seconds_total=self.seconds_total / count,
            looks=self.looks / count,
        )

    def to_metadata(self) -> dict[str, str]:
        """S3 user metadata."""
        resident = {"polls": str(self.polls)} if self.polls else {}
        return resident | {
            "x-digest": self.x_digest,
            "encoding": self.encoding,
            "attempt": str(self.attempt),
            "cold": "1" if self.cold else "0",
            "seconds-read": f"{self.seconds_read:.4f}",
            "seconds-multiply": f"{self.seconds_multiply:.4f}",
            "seconds-total": f"{self.seconds_total:.4f}",
            "peak-memory": str(self.peak_memory),
            "scale": f"{self.scale:.6g}",
            "looks": f"{self.looks:g}",
            "finite": "1" if self.finite else "0",
        }

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, str]) -> AnswerMetadata:
        """Read back `to_metadata`."""
        found = {name.lower(): value for name, value in metadata.items()}
        return cls(
            x_digest=found.get("x-digest", ""),
            encoding=found.get("encoding", ""),
            attempt=int(_number(found.get("attempt"))),
            cold=found.get("cold") == "1",
            seconds_read=_number(found.get("seconds-read")),
            seconds_multiply=_number(found.get("seconds-multiply")),
            seconds_total=_number(found.get("seconds-total")),
            peak_memory=int(_number(found.get("peak-memory"))),
            scale=_number(found.get("scale")),
            polls=int(_number(found.get("polls"))),
            looks=_number(found.get("looks")),
            finite=found.get("finite") == "1",
        )


def _number(text: str | None) -> float:
    try:
        value = float(text or 0)
    except ValueError:
        return 0.0
    return value if math.isfinite(value) and value >= 0 else 0.0
