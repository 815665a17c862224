"""Sources in .npy form: a local file, or an S3 object read by ranges."""

from __future__ import annotations

import os
import stat
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.arrays import MAX_HEADER, PREAMBLE, byte_view, parse_header
from blockstore.bucket import Bucket
from blockstore.errors import ArrayRefused, ObjectChanged, ObjectMissing
from encoder.errors import SourceChanged, SourceRefused
from encoder.pieces import Piece
from encoder.sources.source import Source, check_matrix

S3_SCHEME = "s3://"


class StoredSource(Source):
    """What files and objects share: the header, and where a piece lies in the bytes."""

    def _open(self, what: str, size: int) -> None:
        """Check the header against the `size` in bytes of the file or object."""
        head = bytearray(min(size, MAX_HEADER + PREAMBLE))
        self._read_into(memoryview(head), 0)
        try:
            header = parse_header(bytes(head))
        except ArrayRefused as exc:
            raise SourceRefused(f"{what}: {exc}") from exc
        self.shape = check_matrix(what, header.shape, header.dtype)
        data = size - header.offset
        if data < header.data_bytes:
            raise SourceRefused(
                f"{what}: truncated: its header says {header.shape} {header.dtype}, "
                f"{header.data_bytes:,} bytes, the file has {data:,}; copy or save it again"
            )
        if data > header.data_bytes:
            raise SourceRefused(
                f"{what}: {data - header.data_bytes:,} bytes follow the array: it holds more than "
                "one array, or is damaged; save one array with numpy.save"
            )
        self.dtype = header.dtype
        self.order = "F" if header.fortran else "C"
        self.description = what
        self._offset = header.offset

    @abstractmethod
    def _read_into(self, view: memoryview, offset: int) -> None:
        """Fill `view` with the bytes from `offset` on."""

    def read_piece(self, piece: Piece) -> NDArray[Any]:
        """Read a piece: one read if it is contiguous, one for each line if not."""
        width = piece.stop - piece.start
        out = np.empty((piece.line1 - piece.line0, width), self.dtype)
        view = byte_view(out)
        if width == self.length:
            self._read_into(view, self._position(piece.line0, 0))
            return out
        step = width * self.dtype.itemsize
        for i in range(len(out)):
            line = view[i * step : (i + 1) * step]
            self._read_into(line, self._position(piece.line0 + i, piece.start))
        return out

    def _position(self, line: int, entry: int) -> int:
        return self._offset + (line * self.length + entry) * self.dtype.itemsize


class FileSource(StoredSource):
    """An .npy file, by bounded `preadv`."""

    def __init__(self, path: str) -> None:
        try:
            self._file = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        except OSError as exc:
            raise SourceRefused(f"{path}: cannot be opened: {exc.strerror}") from exc
        try:
            found = os.fstat(self._file)
            if not stat.S_ISREG(found.st_mode):
                raise SourceRefused(
                    f"{path}: must be a regular file, because it is read twice; "
                    "save the matrix with numpy.save"
                )
            self._path = path
            self._state = _state(found)
            self._open(path, found.st_size)
            self.description = os.path.basename(path)
        except BaseException:
            os.close(self._file)
            raise

    def _read_into(self, view: memoryview, offset: int) -> None:
        while view:
            try:
                count = os.preadv(self._file, [view], offset)
            except OSError as exc:
                raise SourceRefused(f"{self._path}: cannot be read: {exc.strerror}") from exc
            if count == 0:
                raise SourceChanged(f"{self._path}: became shorter while it was read")
            view, offset = view[count:], offset + count

    def check_unchanged(self) -> None:
        """Compare size, modification time and inode with those at the start."""
        if _state(os.fstat(self._file)) != self._state:
            raise SourceChanged(
                f"{self._path}: changed while it was being encoded; nothing was published. "
                "Encode it again when nothing writes to it"
            )

    def close(self) -> None:
        """Close the file."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1


def _state(found: os.stat_result) -> tuple[int, ...]:
    return found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev


class ObjectSource(StoredSource):
    """An .npy object in S3, by ranged GETs that all insist on the same `etag`."""

    parallel_reads = 8  # each waits for its first byte; more would take memory from the tiles

    def __init__(self, url: str, client: Any, etag: str | None = None) -> None:
        """With `etag`, raises `SourceChanged` unless the object has it."""
        self._bucket, key = split_url(url, client)
        self._url, self._key = url, key
        found = self._bucket.head(key)
        if found is None:
            self._bucket.check()  # a missing bucket and a missing key look the same to a HEAD
            raise ObjectMissing(f"{url} does not exist")
        self.etag = found.etag
        if etag not in (None, found.etag):
            raise self._changed()
        self._open(url, found.size)

    @property
    def place(self) -> tuple[str, str]:
        """(bucket, key)."""
        return self._bucket.name, self._key

    def _read_into(self, view: memoryview, offset: int) -> None:
        if not view:
            return
        try:
            self._bucket.read_into(view, self._key, offset, if_match=self.etag)
        except ObjectChanged as exc:
            raise self._changed() from exc

    def check_unchanged(self) -> None:
        """Nothing to do: every read insists on the ETag."""

    def _changed(self) -> SourceChanged:
        return SourceChanged(
            f"{self._url}: was replaced while it was being encoded; nothing was published. "
            "Encode it again when nothing writes to it"
        )


def split_url(url: str, client: Any) -> tuple[Bucket, str]:
    """The bucket and the key of "s3://bucket/key"; raises `SourceRefused`."""
    name, _, key = url[len(S3_SCHEME) :].partition("/")
    if not name or not key:
        raise SourceRefused(f"{url}: must be s3://bucket/key")
    if client is None:
        raise SourceRefused(f"{url}: an S3 client is needed to read it")
    return Bucket(client, name), key
