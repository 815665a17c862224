"""A bucket in memory with the methods of `blockstore.bucket.Bucket`, for fast tests of the layers
above it. It can hold objects that appear later on a clock, and fail at the n-th request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import md5

from blockstore.bucket import ObjectInfo
from blockstore.errors import CorruptObject, ObjectChanged, ObjectMissing, UploadMissing
from blockstore.uploads import LEAST_PART, Peek


@dataclass
class Stored:
    body: bytes
    metadata: dict[str, str]
    since: float = 0.0


@dataclass
class MemoryBucket:
    name: str = "memory"
    now: Callable[[], float] = lambda: 0.0
    before: Callable[[str, str], None] = lambda kind, key: None  # hook: may raise
    after_put: Callable[[str], None] = lambda key: None
    objects: dict[str, Stored] = field(default_factory=dict)
    requests: list[tuple[str, str]] = field(default_factory=list)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    started: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()

    def _request(self, kind: str, key: str) -> None:
        self.requests.append((kind, key))
        self.before(kind, key)

    def _visible(self, key: str) -> Stored:
        stored = self.objects.get(key)
        if stored is None or stored.since > self.now():
            raise ObjectMissing(f"s3://{self.name}/{key} does not exist")
        return stored

    def get(
        self,
        key: str,
        *,
        first: int | None = None,
        last: int | None = None,
        if_match: str | None = None,
    ) -> bytes:
        self._request("get", key)
        body = self._visible(key).body
        if if_match is not None and self._info(key).etag != if_match:
            raise ObjectChanged(f"s3://{self.name}/{key} was replaced")
        return body[first or 0 : None if last is None else last + 1]

    def get_object(self, key: str) -> tuple[bytes, dict[str, str]]:
        self._request("get", key)
        stored = self._visible(key)
        return stored.body, dict(stored.metadata)

    def get_changed(self, key: str, etag: str | None) -> tuple[bytes, str] | None:
        self._request("get", key)
        stored, now = self._visible(key), self._info(key).etag
        return None if etag == now else (stored.body, now)

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
        self._request("put", key)
        with self._lock:
            there = key in self.objects and self.objects[key].since <= self.now()
            if if_none_match and there:
                return ""
            if if_match is not None and not (there and self._info(key).etag == if_match):
                return ""
            self.objects[key] = Stored(bytes(body), dict(metadata or {}))
            etag = self._info(key).etag
        self.after_put(key)
        return etag

    def read_into(
        self, view: memoryview, key: str, first: int, *, if_match: str | None = None
    ) -> None:
        last = first + len(view) - 1
        body = self.get(key, first=first, last=last, if_match=if_match)
        if len(body) != len(view):
            raise CorruptObject(f"s3://{self.name}/{key}: shorter than its description says")
        view[:] = body

    def peek(self, key: str, count: int) -> Peek:
        self._request("get", key)
        stored = self._visible(key)
        info = self._info(key)
        return Peek(stored.body[:count], info.size, info.etag, dict(stored.metadata))

    def start_upload(self, key: str, *, content_type: str | None = None) -> str:
        self._request("put", key)
        with self._lock:
            self.started += 1
            name = f"upload-{self.started}"
            self.uploads[name] = {}
        return name

    def put_part(self, key: str, upload: str, number: int, body: bytes | bytearray) -> None:
        self._request("put", key)
        with self._lock:
            self._parts(upload)[number] = bytes(body)

    def finish_upload(self, key: str, upload: str, sizes: Mapping[int, int]) -> None:
        self._request("put", key)
        with self._lock:
            parts = self._parts(upload)
            if {number: len(body) for number, body in parts.items()} != dict(sizes):
                raise CorruptObject(f"s3://{self.name}/{key}: a part is missing")
            if any(len(parts[number]) < LEAST_PART for number in sorted(parts)[:-1]):
                raise AssertionError("S3 refuses parts of less than 5 MB, but for the last")
            whole = b"".join(parts[number] for number in sorted(parts))
            self.objects[key] = Stored(whole, {})
            del self.uploads[upload]

    def abort_upload(self, key: str, upload: str) -> None:
        self._request("delete", key)
        self.uploads.pop(upload, None)

    def _parts(self, upload: str) -> dict[int, bytes]:
        if upload not in self.uploads:
            raise UploadMissing(f"upload {upload} was finished or aborted")
        return self.uploads[upload]

    def delete_prefix(self, prefix: str) -> int:
        return self.delete(key for key in list(self.objects) if key.startswith(prefix))

    def head(self, key: str) -> ObjectInfo | None:
        self._request("head", key)
        try:
            self._visible(key)
        except ObjectMissing:
            return None
        return self._info(key)

    def metadata(self, key: str) -> dict[str, str]:
        self._request("head", key)
        return dict(self._visible(key).metadata)

    def folders(self, prefix: str) -> Iterator[str]:
        self._request("list", prefix)
        below = {key[len(prefix) :] for key in self.objects if key.startswith(prefix)}
        yield from sorted({rest.split("/")[0] for rest in below if "/" in rest})

    def _info(self, key: str) -> ObjectInfo:
        stored = self.objects[key]
        etag = md5(stored.body).hexdigest()
        return ObjectInfo(key, len(stored.body), etag, datetime.fromtimestamp(stored.since, UTC))

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        self._request("list", prefix)
        for key in sorted(self.objects):
            late = self.objects[key].since > self.now()
            if key.startswith(prefix) and not late and (start_after is None or key > start_after):
                yield self._info(key)

    def delete(self, keys: Iterable[str]) -> int:
        every = list(keys)
        for key in every:
            self._request("delete", key)
            self.objects.pop(key, None)
        return len(every)
