"""What a botocore client sends, by kind of request, with the bytes of the objects it concerns."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

READS = ("GetObject", "HeadObject", "HeadBucket")
LISTS = ("ListObjectsV2", "ListParts")
WRITES = ("PutObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload")


@dataclass
class Requests:
    """kinds: requests by name of the operation; ranged: bytes asked for by range, sent: bytes of
    bodies, both by key."""

    kinds: Counter[str] = field(default_factory=Counter)
    ranged: Counter[str] = field(default_factory=Counter)
    sent: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def _billed(self, names: tuple[str, ...]) -> int:
        return sum(self.kinds[name] for name in names)

    @property
    def gets(self) -> int:
        return self._billed(READS)

    @property
    def puts(self) -> int:
        return self._billed(WRITES)

    @property
    def lists(self) -> int:
        return self._billed(LISTS)

    def note(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        key, body = params.get("Key", ""), params.get("Body", b"")
        size = len(body) if isinstance(body, bytes | bytearray) else body.seek(0, 2)
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", params.get("Range", ""))
        with self.lock:
            self.kinds[model.name] += 1
            self.sent[key] += size
            if found is not None:
                self.ranged[key] += int(found[2]) - int(found[1]) + 1
        if not isinstance(body, bytes | bytearray):
            body.seek(0)


@contextmanager
def counted(client: Any) -> Iterator[Requests]:
    """Count what `client` sends in the block."""
    requests = Requests()
    client.meta.events.register("before-parameter-build.s3", requests.note)
    try:
        yield requests
    finally:
        client.meta.events.unregister("before-parameter-build.s3", requests.note)
