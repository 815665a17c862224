"""A file on disk that has no name, so that nothing of it survives the process."""

from __future__ import annotations

import errno
import os
import tempfile

from encoder.errors import SpoolTooSmall


class SpoolFile:
    """Bytes on disk beside the process's memory; any thread may read and write any part."""

    def __init__(self, folder: str, wanted: int) -> None:
        """`wanted`: bytes that it will hold, for the message when the disk runs full."""
        self._folder = folder
        self._wanted = wanted
        try:
            self._file = tempfile.TemporaryFile(  # noqa: SIM115 (closed by `close`)
                dir=folder, prefix="polarlambda-", buffering=0
            )
        except OSError as exc:
            raise SpoolTooSmall(
                f"no spool file can be made in {folder}: {exc.strerror}; choose another folder "
                "(TMPDIR), or give more memory"
            ) from exc

    def write(self, view: memoryview, place: int) -> None:
        """Write all of `view` at byte `place`. Raises `SpoolTooSmall` when the disk is full."""
        while view:
            try:
                count = os.pwrite(self._file.fileno(), view, place)
            except OSError as exc:
                if exc.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                raise SpoolTooSmall(
                    f"the spool's folder {self._folder} ran full: it needs {self._wanted:,} bytes; "
                    "free some, choose another folder (TMPDIR) or give more memory. What was "
                    "uploaded is kept for the next attempt"
                ) from exc
            view, place = view[count:], place + count

    def read_into(self, view: memoryview, place: int) -> None:
        """Fill `view` with the bytes from `place` on."""
        while view:
            count = os.preadv(self._file.fileno(), [view], place)
            if count == 0:
                raise OSError(f"the spool file in {self._folder} is shorter than what was written")
            view, place = view[count:], place + count

    def close(self) -> None:
        """Close the file, which frees its room."""
        self._file.close()
