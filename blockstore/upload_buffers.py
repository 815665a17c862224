"""Bodies of uploads, used again: fresh pages cost as much as the bytes copied into them."""

from __future__ import annotations

import threading

__all__ = ["UploadBuffers"]


class UploadBuffers(threading.local):
    """One body for each thread that asks, kept for its next upload."""

    def __init__(self) -> None:
        self._body = bytearray()

    def make(self, header: bytes, size: int) -> tuple[bytearray, memoryview]:
        """(body, view): `header` and then `size` bytes, which are to be written through the view.

        Valid until the thread asks again, so its upload must have ended by then.
        """
        if len(self._body) != len(header) + size:
            self._body = bytearray(len(header) + size)
        self._body[: len(header)] = header
        return self._body, memoryview(self._body)[len(header) :]
