"""A folder with the methods of a bucket that decoding uses, for benchmarks of the decoder alone:
several processes read and write it, and it counts the bytes."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from blockstore.bucket import Bucket, ObjectInfo
from blockstore.errors import ObjectMissing


class FolderBucket(Bucket):
    """Keys are paths below `folder`; an object's parts are files of their own until it is made."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.name = folder, folder.name
        self.read: dict[str, int] = {}  # bytes by key, of ranged reads
        self._lock = threading.Lock()

    def get(self, key: str, **_: object) -> bytes:
        try:
            return (self.folder / key).read_bytes()
        except FileNotFoundError as exc:
            raise ObjectMissing(key) from exc

    def read_into(
        self, view: memoryview, key: str, first: int, *, if_match: str | None = None
    ) -> None:
        with open(self.folder / key, "rb", buffering=0) as file:
            file.seek(first)
            count = file.readinto(view)
        if count != len(view):
            raise OSError(f"{key}: {count} of {len(view)} bytes")
        with self._lock:
            self.read[key] = self.read.get(key, 0) + count

    def put(self, key: str, body: bytes | bytearray, **_: object) -> str:
        path = self.folder / key
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}")
        new.write_bytes(body)
        etag = f'"{new.stat().st_mtime_ns:x}"'  # no digest: it would be measured, too
        new.replace(path)
        return etag

    def start_upload(self, key: str, *, content_type: str | None = None) -> str:
        return f"{key}.parts"

    def put_part(self, key: str, upload: str, number: int, body: bytes | bytearray) -> None:
        self.put(f"{upload}/{number:05d}", body)

    def finish_upload(self, key: str, upload: str, sizes: Mapping[int, int]) -> None:
        with open(self.folder / key, "wb") as file:
            for number, size in sizes.items():
                body = self.get(f"{upload}/{number:05d}")
                if len(body) != size:
                    raise OSError(f"part {number} has {len(body)} bytes, not {size}")
                file.write(body)

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        raise NotImplementedError("decode functions do not list")
