"""A read-only Zarr store over one of our buckets, with its errors, retries and ETags."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

from zarr.abc.store import (
    ByteRequest,
    OffsetByteRequest,
    RangeByteRequest,
    Store,
    SuffixByteRequest,
)
from zarr.core.buffer import Buffer, BufferPrototype

from blockstore.bucket import Bucket
from blockstore.errors import ObjectChanged, ObjectMissing
from encoder.errors import SourceChanged


class BucketStore(Store):
    """The objects below `prefix`; each must stay what it was when they were listed.

    The listing is made once: an object that is not in it is not there.
    """

    supports_writes = False
    supports_deletes = False
    supports_listing = True

    def __init__(self, bucket: Bucket, prefix: str) -> None:
        super().__init__(read_only=True)
        self._bucket = bucket
        self._prefix = prefix.strip("/") + "/"
        self._found = {
            info.key[len(self._prefix) :]: (info.etag, info.size)
            for info in bucket.list(self._prefix)
        }

    def __eq__(self, value: object) -> bool:
        return (
            isinstance(value, BucketStore)
            and value._bucket is self._bucket
            and value._prefix == self._prefix
        )

    def __repr__(self) -> str:
        return f"BucketStore({self._bucket.name!r}, {self._prefix!r})"

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """The bytes of an object, or some of them; None if there is none."""
        if key not in self._found:
            return None
        return prototype.buffer.from_bytes(await asyncio.to_thread(self._read, key, byte_range))

    def _read(self, key: str, wanted: ByteRequest | None) -> bytes:
        etag, size = self._found[key]
        first, last = 0, size - 1
        if isinstance(wanted, RangeByteRequest):
            first, last = wanted.start, min(wanted.end, size) - 1
        elif isinstance(wanted, OffsetByteRequest):
            first = wanted.offset
        elif isinstance(wanted, SuffixByteRequest):
            first = max(0, size - wanted.suffix)
        if last < first:
            return b""
        try:
            return self._bucket.get(self._prefix + key, first=first, last=last, if_match=etag)
        except (ObjectChanged, ObjectMissing) as exc:
            raise SourceChanged(
                f"s3://{self._bucket.name}/{self._prefix}{key}: changed while it was read; encode "
                "it again when nothing writes to it"
            ) from exc

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, ByteRequest | None]]
    ) -> list[Buffer | None]:
        """Several `get`s."""
        return list(await asyncio.gather(*(self.get(k, prototype, r) for k, r in key_ranges)))

    async def exists(self, key: str) -> bool:
        """Whether there is such an object."""
        return key in self._found

    async def list(self) -> AsyncIterator[str]:
        """All keys."""
        for key in self._found:
            yield key

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Keys that begin with `prefix`."""
        for key in self._found:
            if key.startswith(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Names directly below a folder."""
        start = f"{prefix.rstrip('/')}/" if prefix else ""
        inside = (key[len(start) :] for key in self._found if key.startswith(start))
        for name in sorted({key.partition("/")[0] for key in inside}):
            yield name

    async def set(self, key: str, value: Buffer) -> None:
        """Refused: a source is only read."""
        self._check_writable()

    async def delete(self, key: str) -> None:
        """Refused: a source is only read."""
        self._check_writable()

    def __hash__(self) -> Any:
        return hash((id(self._bucket), self._prefix))
