"""A bucket that counts the requests made through it and what they bring, for the bill in the
report."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping

from blockstore.bucket import Bucket, ObjectInfo
from blockstore.uploads import Peek

__all__ = ["MeteredBucket"]

PAGE = 1000  # keys a LIST request returns


class MeteredBucket(Bucket):
    """Passes everything on to `inner` and counts GETs (HEADs included), the bytes they bring, PUTs
    and LIST pages.

    Repetitions inside the SDK are not seen; they are rare, and free when S3 answers 503.
    """

    def __init__(self, inner: Bucket) -> None:
        self._inner = inner
        self.name = inner.name
        self._lock = threading.Lock()
        self.gets = self.puts = self.lists = self.received = 0

    def get(
        self,
        key: str,
        *,
        first: int | None = None,
        last: int | None = None,
        if_match: str | None = None,
    ) -> bytes:
        """See `Bucket.get`."""
        self._count(gets=1)
        body = self._inner.get(key, first=first, last=last, if_match=if_match)
        self._count(received=len(body))
        return body

    def get_object(self, key: str) -> tuple[bytes, dict[str, str]]:
        """See `Bucket.get_object`."""
        self._count(gets=1)
        body, metadata = self._inner.get_object(key)
        self._count(received=len(body))
        return body, metadata

    def get_changed(self, key: str, etag: str | None) -> tuple[bytes, str] | None:
        """See `Bucket.get_changed`; S3 charges for a 304 as for any GET."""
        self._count(gets=1)
        found = self._inner.get_changed(key, etag)
        self._count(received=len(found[0]) if found is not None else 0)
        return found

    def head(self, key: str) -> ObjectInfo | None:
        """See `Bucket.head`."""
        self._count(gets=1)
        return self._inner.head(key)

    def put(
        self,
        key: str,
        body: bytes | bytearray,
        *,
        metadata: Mapping[str, str] | None = None,
        if_none_match: bool = False,
        if_match: str | None = None,
        content_type: str | None = None,
    ) -> str:
        """See `Bucket.put`."""
        self._count(puts=1)
        return self._inner.put(
            key,
            body,
            metadata=metadata,
            if_none_match=if_none_match,
            if_match=if_match,
            content_type=content_type,
        )

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        """See `Bucket.list`."""
        self._count(lists=1)
        for number, info in enumerate(self._inner.list(prefix, start_after=start_after)):
            if number % PAGE == 0 and number:
                self._count(lists=1)
            yield info

    def delete(self, keys: Iterable[str]) -> int:
        """See `Bucket.delete`; S3 does not charge for it."""
        return self._inner.delete(keys)

    def read_into(
        self, view: memoryview, key: str, first: int, *, if_match: str | None = None
    ) -> None:
        """See `Bucket.read_into`."""
        self._count(gets=1)
        self._inner.read_into(view, key, first, if_match=if_match)
        self._count(received=len(view))

    def peek(self, key: str, count: int) -> Peek:
        """See `Uploads.peek`."""
        self._count(gets=1)
        found = self._inner.peek(key, count)
        self._count(received=len(found.head))
        return found

    def start_upload(self, key: str, *, content_type: str | None = None) -> str:
        """See `Uploads.start_upload`."""
        self._count(puts=1)
        return self._inner.start_upload(key, content_type=content_type)

    def put_part(self, key: str, upload: str, number: int, body: bytes | bytearray) -> None:
        """See `Uploads.put_part`."""
        self._count(puts=1)
        self._inner.put_part(key, upload, number, body)

    def finish_upload(self, key: str, upload: str, sizes: Mapping[int, int]) -> None:
        """See `Uploads.finish_upload`: a PUT, and a list of parts for every 1,000."""
        self._count(puts=1, lists=1 + len(sizes) // PAGE)
        self._inner.finish_upload(key, upload, sizes)

    def abort_upload(self, key: str, upload: str) -> None:
        """See `Uploads.abort_upload`; S3 does not charge for it."""
        self._inner.abort_upload(key, upload)

    def delete_prefix(self, prefix: str) -> int:
        """See `Bucket.delete_prefix`."""
        self._count(lists=1)
        return self._inner.delete_prefix(prefix)

    def _count(self, gets: int = 0, puts: int = 0, lists: int = 0, received: int = 0) -> None:
        with self._lock:
            self.gets += gets
            self.puts += puts
            self.lists += lists
            self.received += received
