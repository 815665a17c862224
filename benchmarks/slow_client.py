"""An S3 client in this process that takes its time: seconds to the first byte of every request, and
a link of so many bytes a second each way, shared by all requests under way. No HTTP, no server:
what is measured with it is who waits for what, not the machine."""

from __future__ import annotations

import hashlib
import io
import re
import threading
import time
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

__all__ = ["SlowClient"]

PAGE = 1000
READS = ("get_object", "head_object", "head_bucket")
WRITES = ("put_object", "create_multipart_upload", "upload_part", "complete_multipart_upload")


class Link:
    """Bytes pass one after the other."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._free = 0.0
        self._lock = threading.Lock()

    def until(self, size: int, request: float) -> float:
        """When `size` bytes that are asked for now have passed."""
        with self._lock:
            self._free = max(self._free, time.monotonic() + request) + size / self._rate
            return self._free


class SlowClient:
    """The methods of a boto3 S3 client that `blockstore.bucket.Bucket` calls; nothing waits, and
    nothing is counted, before `begin`."""

    def __init__(self, request: float, read: float, write: float) -> None:
        self._request, self._read, self._write = request, Link(read), Link(write)
        self._slow = False
        self._objects: dict[str, bytes] = {}
        self._parts: dict[str, dict[int, bytes]] = {}
        self._kinds: Counter[str] = Counter()
        self._lock = threading.Lock()

    @property
    def gets(self) -> int:
        """Requests that are billed as GETs."""
        return sum(self._kinds[name] for name in READS)

    @property
    def puts(self) -> int:
        """Requests that are billed as PUTs."""
        return sum(self._kinds[name] for name in WRITES)

    def begin(self) -> None:
        """Count and wait from now on."""
        self._kinds.clear()
        self._slow = True

    def end(self) -> None:
        """Neither wait nor count any more."""
        self._slow = False

    def get_object(self, Key: str, Range: str = "", **_: Any) -> dict[str, Any]:
        """The object, or bytes of it."""
        body = memoryview(self._object(Key, "GetObject"))
        size = len(body)
        if (asked := re.fullmatch(r"bytes=(\d+)-(\d*)", Range)) is not None:
            body = body[int(asked[1]) : int(asked[2]) + 1 if asked[2] else size]
        self._wait("get_object", self._read, len(body))
        answer = self._described(Key) | {"ContentLength": len(body), "Body": io.BytesIO(body)}
        return answer | {"ContentRange": f"bytes */{size}"}

    def head_object(self, Key: str, **_: Any) -> dict[str, Any]:
        """What the object is."""
        self._wait("head_object", self._read, 0)
        return self._described(Key) | {"ContentLength": len(self._object(Key, "HeadObject"))}

    def head_bucket(self, **_: Any) -> dict[str, Any]:
        """It is there."""
        self._wait("head_bucket", self._read, 0)
        return {}

    def put_object(self, Key: str, Body: Any, IfNoneMatch: str = "", **_: Any) -> dict[str, Any]:
        """Write, unless it is there and must not be."""
        self._wait("put_object", self._write, len(Body))
        with self._lock:
            if IfNoneMatch and Key in self._objects:
                raise _error("PreconditionFailed", 412, "PutObject")
            self._objects[Key] = bytes(Body)
        return self._described(Key)

    def list_objects_v2(
        self, Prefix: str, Delimiter: str = "", ContinuationToken: str = "", **_: Any
    ) -> dict[str, Any]:
        """A page of the keys below a prefix, or of the folders."""
        self._wait("list_objects_v2", self._read, 0)
        with self._lock:
            keys = sorted(key for key in self._objects if key.startswith(Prefix))
        if Delimiter:
            inner = (key[len(Prefix) :] for key in keys)
            names = sorted({Prefix + k.partition("/")[0] + "/" for k in inner if "/" in k})
            return {"CommonPrefixes": [{"Prefix": name} for name in names]}
        first = int(ContinuationToken or 0)
        page = [
            self._described(key) | {"Key": key, "Size": len(self._objects[key])}
            for key in keys[first : first + PAGE]
        ]
        more = len(keys) > first + PAGE
        return {"Contents": page, "IsTruncated": more, "NextContinuationToken": str(first + PAGE)}

    def delete_objects(self, Delete: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Delete."""
        for each in Delete["Objects"]:
            self._objects.pop(each["Key"], None)
        return {}

    def create_multipart_upload(self, Key: str, **_: Any) -> dict[str, Any]:
        """Begin an upload."""
        self._wait("create_multipart_upload", self._write, 0)
        self._parts[Key] = {}
        return {"UploadId": Key}

    def upload_part(self, UploadId: str, PartNumber: int, Body: Any, **_: Any) -> dict[str, Any]:
        """Write a part."""
        self._wait("upload_part", self._write, len(Body))
        self._parts[UploadId][PartNumber] = bytes(Body)
        return {"ETag": ""}

    def list_parts(self, UploadId: str, **_: Any) -> dict[str, Any]:
        """All parts on one page."""
        self._wait("list_parts", self._read, 0)
        parts = sorted(self._parts[UploadId].items())
        return {"Parts": [{"PartNumber": n, "Size": len(b), "ETag": ""} for n, b in parts]}

    def complete_multipart_upload(self, Key: str, UploadId: str, **_: Any) -> dict[str, Any]:
        """Make the object."""
        self._wait("complete_multipart_upload", self._write, 0)
        self._objects[Key] = b"".join(body for _, body in sorted(self._parts.pop(UploadId).items()))
        return {}

    def _object(self, key: str, operation: str) -> bytes:
        try:
            return self._objects[key]
        except KeyError:
            self._wait("get_object" if operation == "GetObject" else "", self._read, 0)
            raise _error("NoSuchKey", 404, operation) from None

    def _described(self, key: str) -> dict[str, Any]:
        name = hashlib.md5(key.encode(), usedforsecurity=False).hexdigest()
        return {"ETag": f'"{name}"', "LastModified": datetime.now(UTC), "Metadata": {}}

    def _wait(self, kind: str, link: Link, size: int) -> None:
        if self._slow and kind:
            with self._lock:
                self._kinds[kind] += 1
            time.sleep(max(0.0, link.until(size, self._request) - time.monotonic()))


def _error(code: str, status: int, operation: str) -> ClientError:
    described = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(described, operation)  # type: ignore[arg-type]
