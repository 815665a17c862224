"""One S3 bucket: whole objects in and out, listings, and S3's answers turned into typed errors.

What S3 guarantees and this module relies on: a PUT is atomic and visible to every later GET and
LIST; a listing holds at most 1,000 keys a page (exactly 1,000 looks complete), has no `Contents`
when it is empty, and may hold zero-byte `prefix/` markers that consoles leave behind. A body that
ends early is not retried by the SDK, so it is here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from botocore.exceptions import BotoCoreError, ClientError, ReadTimeoutError

from blockstore import faults
from blockstore.bodies import read_into, read_whole
from blockstore.errors import (
    AccessDenied,
    BucketMissing,
    CorruptObject,
    ObjectUnchanged,
    StoreError,
    StoreUnavailable,
)
from blockstore.uploads import Uploads, user_metadata

BODY_ATTEMPTS = 4
CONFLICT_ATTEMPTS = 6
DELETE_BATCH = 1000


Received = TypeVar("Received")


@dataclass(frozen=True)
class ObjectInfo:
    """What a listing or a HEAD says of an object: key, size in bytes, ETag, time of the PUT."""

    key: str
    size: int
    etag: str
    last_modified: datetime


class Bucket(Uploads):
    """A bucket behind one shared, thread-safe client.

    Parameters
    ----------
    client : a botocore or boto3 S3 client (`blockstore.connect.s3_client`), or one compatible
    name : the bucket
    pause : seconds slept before the first repetition of a short body or a conflicting PUT;
        doubles each time

    Every method raises the errors of `blockstore.errors` and no other for what S3 answers.
    """

    def __init__(self, client: Any, name: str, *, pause: float = 0.1) -> None:
        self.client = client
        self.name = name
        self._pause = pause

    def __repr__(self) -> str:
        return f"Bucket({self.name!r})"

    def get(
        self,
        key: str,
        *,
        first: int | None = None,
        last: int | None = None,
        if_match: str | None = None,
    ) -> bytes:
        """The bytes of an object, or its bytes `first` to `last`, both included.

        With `if_match`, raises `errors.ObjectChanged` unless the object still has that ETag.
        """
        request: dict[str, Any] = {"Key": key}
        if first is not None or last is not None:
            start = first or 0
            if last is not None and last < start:
                raise ValueError(f"last must be at least first, got {start} and {last}")
            request["Range"] = f"bytes={start}-" + ("" if last is None else str(last))
        if if_match is not None:
            request["IfMatch"] = if_match
        body, _ = self._fetch(request, read_whole)
        if last is not None and len(body) != last - (first or 0) + 1:
            raise self._too_short(key, first or 0, last, len(body))
        return body

    def get_object(self, key: str) -> tuple[bytes, dict[str, str]]:
        """(bytes, user metadata) of an object."""
        body, response = self._fetch({"Key": key}, read_whole)
        return body, user_metadata(response)

    def get_changed(self, key: str, etag: str | None) -> tuple[bytes, str] | None:
        """(bytes, ETag) of an object, None if it still has `etag`: then S3 sends no body (304)."""
        request: dict[str, Any] = {"Key": key}
        if etag is not None:
            request["IfNoneMatch"] = etag
        try:
            body, response = self._fetch(request, read_whole)
        except ObjectUnchanged:
            return None
        return body, str(response["ETag"])

    def read_into(
        self, view: memoryview, key: str, first: int, *, if_match: str | None = None
    ) -> None:
        """Fill `view` with the object's bytes from `first` on, in memory that is the caller's.

        Raises `CorruptObject` if the object ends before, otherwise like `get`.
        """
        last = first + len(view) - 1
        request = {"Key": key, "Range": f"bytes={first}-{last}"}
        if if_match is not None:
            request["IfMatch"] = if_match
        _, response = self._fetch(request, lambda stream: read_into(stream, view))
        count = int(response["ContentLength"])
        if count != len(view):
            raise self._too_short(key, first, last, count)

    def _too_short(self, key: str, first: int, last: int, count: int) -> CorruptObject:
        return CorruptObject(
            f"s3://{self.name}/{key}: bytes {first}-{last} were asked for, {count} bytes came: "
            "the object is shorter than its description says"
        )

    def _fetch(
        self, request: dict[str, Any], read: Callable[[Any], tuple[Received, int]]
    ) -> tuple[Received, dict[str, Any]]:
        """(what `read` made of the body, answer) of a GET; bodies cut short are asked for again."""
        key = request["Key"]
        problem: Exception | None = None
        for attempt in range(BODY_ATTEMPTS):
            if attempt:
                time.sleep(self._pause * 2 ** (attempt - 1))
            try:
                response = self.client.get_object(Bucket=self.name, **request)
            except (ClientError, BotoCoreError) as exc:
                raise faults.translate(exc, "read", self.name, key) from exc
            try:
                with response["Body"] as stream:
                    received, count = read(stream)
            except faults.CUT_SHORT as exc:
                problem = exc
                continue
            if count == int(response["ContentLength"]):
                return received, response
            problem = CorruptObject(
                f"{count} bytes came of the {response['ContentLength']} announced"
            )
        if isinstance(problem, ReadTimeoutError):
            raise faults.translate(problem, "read", self.name, key) from problem
        raise CorruptObject(
            f"s3://{self.name}/{key}: the body was cut short or damaged {BODY_ATTEMPTS} times: "
            f"{problem}"
        ) from problem

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
        """Write an object; returns its ETag, "" if a condition kept it from being written.

        With `if_none_match` only if there is no object at the key, with `if_match` only if the
        one there has that ETag. S3 answers 412 when the condition fails, and 409 when another
        write is under way: that one is repeated until it is decided.
        """
        request: dict[str, Any] = {"Bucket": self.name, "Key": key, "Body": body}
        if metadata:
            request["Metadata"] = dict(metadata)
        if content_type:
            request["ContentType"] = content_type
        if if_none_match:
            request["IfNoneMatch"] = "*"
        if if_match is not None:
            request["IfMatch"] = if_match
        for attempt in range(CONFLICT_ATTEMPTS):
            if attempt:
                time.sleep(self._pause * 2 ** (attempt - 1))
            try:
                return str(self.client.put_object(**request)["ETag"])
            except ClientError as exc:
                conditional = if_none_match or if_match is not None
                if conditional and faults.is_condition_failed(exc, if_match):
                    return ""
                if conditional and faults.is_conflict(exc):
                    continue
                raise faults.translate(exc, "write", self.name, key) from exc
            except BotoCoreError as exc:
                raise faults.translate(exc, "write", self.name, key) from exc
        raise StoreUnavailable(
            f"s3://{self.name}/{key}: other writers kept this conditional write from being "
            f"decided {CONFLICT_ATTEMPTS} times; try again"
        )

    def head(self, key: str) -> ObjectInfo | None:
        """What lies at the key, None if nothing. (S3 answers a HEAD with a bare 404, so
        a missing bucket looks the same: `check` tells them apart.)"""
        try:
            answer = self.client.head_object(Bucket=self.name, Key=key)
        except ClientError as exc:
            if faults.status(exc) == 404:
                return None
            raise faults.translate(exc, "look at", self.name, key) from exc
        except BotoCoreError as exc:
            raise faults.translate(exc, "look at", self.name, key) from exc
        return ObjectInfo(key, int(answer["ContentLength"]), answer["ETag"], answer["LastModified"])

    def metadata(self, key: str) -> dict[str, str]:
        """User metadata of an object, without its bytes; raises `ObjectMissing`."""
        try:
            answer = self.client.head_object(Bucket=self.name, Key=key)
        except (ClientError, BotoCoreError) as exc:
            raise faults.translate(exc, "look at", self.name, key) from exc
        return user_metadata(answer)

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        """The objects below `prefix` in key order, page by page; folder markers are left out."""
        for page in self._pages(prefix, StartAfter=start_after):
            for item in page.get("Contents", ()):
                if not (item["Key"].endswith("/") and item["Size"] == 0):
                    yield ObjectInfo(item["Key"], item["Size"], item["ETag"], item["LastModified"])

    def folders(self, prefix: str) -> Iterator[str]:
        """The names directly below `prefix` (which ends in a slash) that hold objects."""
        for page in self._pages(prefix, Delimiter="/"):
            for item in page.get("CommonPrefixes", ()):
                yield item["Prefix"][len(prefix) : -1]

    def _pages(self, prefix: str, **options: str | None) -> Iterator[dict[str, Any]]:
        request: dict[str, Any] = {"Bucket": self.name, "Prefix": prefix}
        request.update({name: value for name, value in options.items() if value is not None})
        while True:
            try:
                page = self.client.list_objects_v2(**request)
            except (ClientError, BotoCoreError) as exc:
                raise faults.translate(exc, "list", self.name, prefix) from exc
            yield page
            if not page.get("IsTruncated"):
                return
            request["ContinuationToken"] = page["NextContinuationToken"]

    def delete(self, keys: Iterable[str]) -> int:
        """Delete the objects, 1,000 a request; the number asked for. Missing ones are no error."""
        count = 0
        batch: list[dict[str, str]] = []
        for key in keys:
            batch.append({"Key": key})
            if len(batch) == DELETE_BATCH:
                count += self._delete_batch(batch)
                batch = []
        return count + (self._delete_batch(batch) if batch else 0)

    def _delete_batch(self, batch: Sequence[dict[str, str]]) -> int:
        try:
            answer = self.client.delete_objects(
                Bucket=self.name, Delete={"Objects": [*batch], "Quiet": True}
            )
        except (ClientError, BotoCoreError) as exc:
            raise faults.translate(exc, "delete from", self.name, batch[0]["Key"]) from exc
        for failure in answer.get("Errors", ()):  # HTTP 200 may still carry refusals, key by key
            kind = AccessDenied if failure.get("Code") == "AccessDenied" else StoreError
            raise kind(
                f"s3://{self.name}/{failure.get('Key')}: not deleted: "
                f"{failure.get('Code')}: {failure.get('Message')}"
            )
        return len(batch)

    def delete_prefix(self, prefix: str) -> int:
        """Delete everything below `prefix`, folder markers too; the number of objects deleted."""
        if not prefix.endswith("/"):
            raise ValueError(f"prefix must end in a slash, got {prefix!r}")
        keys = (item["Key"] for page in self._pages(prefix) for item in page.get("Contents", ()))
        return self.delete(keys)

    def check(self) -> None:
        """Raise `BucketMissing`, `AccessDenied`, `CredentialsMissing` or `StoreUnavailable`
        unless the bucket is there and may be used."""
        try:
            self.client.head_bucket(Bucket=self.name)
        except ClientError as exc:
            if faults.status(exc) == 404:
                raise BucketMissing(faults.bucket_missing(self.name)) from exc
            raise faults.translate(exc, "use", self.name, None) from exc
        except BotoCoreError as exc:
            raise faults.translate(exc, "use", self.name, None) from exc
