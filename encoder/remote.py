"""The tasks of functions that encode: a range of leaves to look at, or of tiles to write.

Events are small JSON; what is long (the manifest with the code) lies in the bucket. Each task may
run twice, late or in part, and nothing changes: leaves are only read, tiles are functions of the
source and the manifest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from blockstore import documents, keys
from blockstore.documents import Fields
from blockstore.errors import NameRefused
from blockstore.manifest import Manifest
from encoder.errors import EncodeError
from encoder.scan import PartScan

VERSION = 1


class TaskRefused(EncodeError):
    """An event that is no valid task: the message names the field, the rule and the value."""


@dataclass(frozen=True)
class SourceRef:
    """An .npy object below inputs/ of the stack's bucket, as it was when encoding began."""

    key: str
    etag: str

    def to_json(self) -> dict[str, str]:
        """As it is in events and jobs."""
        return {"key": self.key, "etag": self.etag}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> SourceRef:
        """Read and check; raises `TaskRefused`."""
        fields = Fields(data, "source", TaskRefused)
        key = fields.text("key")
        if not key.startswith(keys.INPUTS):
            raise fields.fail("key", f"a key below {keys.INPUTS}")
        return cls(key, fields.text("etag"))


@dataclass(frozen=True)
class ScanTask:
    """Look at the leaves `first` to `stop`, the end excluded."""

    source: SourceRef
    first: int
    stop: int

    def to_event(self) -> dict[str, Any]:
        """The function's event."""
        source = self.source.to_json()
        return {"version": VERSION, "scan": {"first": self.first, "stop": self.stop}} | {
            "source": source
        }


@dataclass(frozen=True)
class WriteTask:
    """Encode tiles of a matrix and write some blocks of each: `tiles` maps a tile to its blocks,
    None for all."""

    matrix: str
    encoding: str
    tiles: Mapping[int, Sequence[int] | None]

    def to_event(self) -> dict[str, Any]:
        """The function's event."""
        tiles = {str(tile): None if b is None else list(b) for tile, b in self.tiles.items()}
        return {
            "version": VERSION,
            "write": {"matrix": self.matrix, "encoding": self.encoding, "tiles": tiles},
        }


def parse_task(event: Mapping[str, Any]) -> ScanTask | WriteTask:
    """Read and check an event; raises `TaskRefused`."""
    fields = Fields(event, "event", TaskRefused)
    fields.version(VERSION)
    if "scan" in event:
        part = Fields(fields.object("scan"), "event's scan", TaskRefused)
        first = part.integer("first")
        stop = part.integer("stop", low=first + 1)
        return ScanTask(SourceRef.from_json(fields.object("source")), first, stop)
    write = Fields(fields.object("write"), "event's write", TaskRefused)
    try:
        matrix = keys.validate_name(write.text("matrix"))
        encoding = keys.validate_encoding(write.text("encoding"))
    except NameRefused as exc:
        raise TaskRefused(f"event: {exc}") from exc
    tiles: dict[int, list[int] | None] = {}
    for tile, blocks in write.object("tiles").items():
        if not (tile.isdecimal() and (blocks is None or _are_numbers(blocks))):
            raise write.fail("tiles", "an object of tile numbers and lists of blocks (or null)")
        tiles[int(tile)] = blocks
    return WriteTask(matrix, encoding, tiles)


def _are_numbers(blocks: Any) -> bool:
    return isinstance(blocks, list) and all(type(b) is int and b >= 0 for b in blocks)


@dataclass(frozen=True)
class EncodeJob:
    """What all write tasks of an encoding share (`keys.encode_job_key`)."""

    manifest: Manifest
    source: SourceRef

    def to_json(self) -> bytes:
        """As it lies in the bucket."""
        manifest = documents.parse(self.manifest.to_json(), "manifest", TaskRefused)
        document = {"version": VERSION, "manifest": manifest, "source": self.source.to_json()}
        return documents.dump(document)

    @classmethod
    def from_json(cls, body: bytes) -> EncodeJob:
        """Read and check; raises `TaskRefused`, `ManifestError`."""
        fields = Fields(documents.parse(body, "job", TaskRefused), "job", TaskRefused)
        fields.version(VERSION)
        source = SourceRef.from_json(fields.object("source"))
        return cls(Manifest.from_json(fields.object("manifest")), source)


def scan_to_json(scan: PartScan) -> dict[str, Any]:
    """A scan as a function returns it."""
    leaves = [leaf.hex() for leaf in scan.leaves]
    bad = None if scan.bad is None else list(scan.bad)
    return {"low": scan.low, "high": scan.high, "leaves": leaves, "bad": bad}


def scan_from_json(data: Mapping[str, Any], count: int) -> PartScan:
    """Read what a function returned about `count` leaves; raises `TaskRefused`."""
    fields = Fields(data, "answer", TaskRefused)
    if data.get("bad") is not None:
        row, column = fields.integers("bad")
        return PartScan(None, None, (), (row, column))
    leaves = data.get("leaves")
    if not isinstance(leaves, list) or len(leaves) != count:
        raise fields.fail("leaves", f"{count} digests")
    return PartScan(data["low"], data["high"], tuple(bytes.fromhex(leaf) for leaf in leaves))
