"""Reading the body of a GET: whole, or into memory that is the caller's."""

from __future__ import annotations

from typing import Any

__all__ = ["read_into", "read_whole"]

READ_BYTES = 256 << 10


def read_whole(stream: Any) -> tuple[bytes, int]:
    """(body, its length)."""
    body: bytes = stream.read()
    return body, len(body)


def read_into(stream: Any, view: memoryview) -> tuple[None, int]:
    """The number of bytes that came; small reads, because each of them is copied once more."""
    done = 0
    while done < len(view):
        count = stream.readinto(view[done : done + READ_BYTES])
        if count == 0:
            break
        done += count
    return None, done + len(stream.read(1))  # the end is where S3's checksum is compared
