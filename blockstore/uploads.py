"""Objects written in parts, and the beginning of an object with all that a GET says of it.

S3 takes up to 10,000 parts of an object, each of 5 MB at least but for the last, in any order and
from any process; the object appears when the upload is finished. Parts of uploads that nobody
finishes are billed until they are aborted (the template's lifecycle rule does it after a day).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from blockstore import faults
from blockstore.errors import CorruptObject

__all__ = ["LEAST_PART", "MOST_PARTS", "Peek", "Uploads", "user_metadata"]

LEAST_PART = 5 << 20
MOST_PARTS = 10_000


@dataclass(frozen=True)
class Peek:
    """The first bytes of an object, and what S3 says of the whole: size in bytes, ETag, user
    metadata."""

    head: bytes
    size: int
    etag: str
    metadata: dict[str, str]


def user_metadata(answer: Mapping[str, Any]) -> dict[str, str]:
    """An answer's user metadata, names in lower case as S3 keeps them: what stands between, a proxy
    or another store, may send the headers that they travel in otherwise."""
    return {name.lower(): value for name, value in answer.get("Metadata", {}).items()}


class Uploads:
    """What a bucket does besides whole objects (mixed into `blockstore.bucket.Bucket`)."""

    client: Any
    name: str

    def peek(self, key: str, count: int) -> Peek:
        """The first `count` bytes (fewer if the object is shorter) and the object's description.

        One request where a HEAD and a GET would be two.
        """
        request = {"Bucket": self.name, "Key": key, "Range": f"bytes=0-{count - 1}"}
        answer = self._call("read", key, self.client.get_object, request)
        try:
            with answer["Body"] as stream:
                head: bytes = stream.read()
        except faults.CUT_SHORT as exc:
            raise CorruptObject(f"s3://{self.name}/{key}: the body was cut short: {exc}") from exc
        whole = str(answer.get("ContentRange", "")).rpartition("/")[2]
        size = int(whole) if whole.isdecimal() else int(answer["ContentLength"])
        return Peek(head, size, answer["ETag"], user_metadata(answer))

    def start_upload(self, key: str, *, content_type: str | None = None) -> str:
        """Begin to write an object in parts; the id of the upload."""
        request: dict[str, Any] = {"Bucket": self.name, "Key": key}
        if content_type:
            request["ContentType"] = content_type
        answer = self._call("write", key, self.client.create_multipart_upload, request)
        return str(answer["UploadId"])

    def put_part(self, key: str, upload: str, number: int, body: bytes | bytearray) -> None:
        """Write part `number`, from 1, over the one that is there."""
        request: dict[str, Any] = {"Bucket": self.name, "Key": key, "UploadId": upload}
        request |= {"PartNumber": number, "Body": body}
        self._call("write", key, self.client.upload_part, request)

    def uploaded(self, key: str, upload: str) -> Iterator[dict[str, Any]]:
        """The parts that are there, in order, as S3 describes them (PartNumber, Size, ETag).

        Raises `ObjectMissing` when there is no such upload (any more).
        """
        request: dict[str, Any] = {"Bucket": self.name, "Key": key, "UploadId": upload}
        while True:
            page = self._call("list the parts of", key, self.client.list_parts, request)
            yield from page.get("Parts", ())
            if not page.get("IsTruncated"):
                return
            request["PartNumberMarker"] = page["NextPartNumberMarker"]

    def finish_upload(self, key: str, upload: str, sizes: Mapping[int, int]) -> None:
        """Make the object of its parts, whose sizes by number must be `sizes`.

        Raises `CorruptObject` if a part is missing or of another size; nothing is written then.
        """
        found = {int(part["PartNumber"]): part for part in self.uploaded(key, upload)}
        there = {number: int(part["Size"]) for number, part in found.items()}
        wrong = [number for number, size in sizes.items() if there.get(number) != size]
        if wrong or len(there) != len(sizes):
            raise CorruptObject(
                f"s3://{self.name}/{key}: part {wrong[0] if wrong else max(there)} of the upload "
                f"is missing or has another size: {len(there)} parts are there, {len(sizes)} "
                "belong to it"
            )
        parts = [
            {name: value for name, value in found[number].items() if _belongs(name)}
            for number in sorted(sizes)
        ]
        request: dict[str, Any] = {"Bucket": self.name, "Key": key, "UploadId": upload}
        request["MultipartUpload"] = {"Parts": parts}
        self._call("write", key, self.client.complete_multipart_upload, request)

    def abort_upload(self, key: str, upload: str) -> None:
        """Give the parts up; no error if the upload has ended."""
        request = {"Bucket": self.name, "Key": key, "UploadId": upload}
        try:
            self.client.abort_multipart_upload(**request)
        except ClientError as exc:
            if faults.code(exc) != "NoSuchUpload":
                raise faults.translate(exc, "abort the upload of", self.name, key) from exc
        except BotoCoreError as exc:
            raise faults.translate(exc, "abort the upload of", self.name, key) from exc

    def _call(self, doing: str, key: str, method: Any, request: Mapping[str, Any]) -> Any:
        try:
            return method(**request)
        except (ClientError, BotoCoreError) as exc:
            raise faults.translate(exc, doing, self.name, key) from exc


def _belongs(name: str) -> bool:
    """Whether a field of a listed part is asked for when the upload is finished."""
    return name in ("PartNumber", "ETag") or name.startswith("Checksum")
