"""A Zarr array (version 3, or 2) as a source: a local folder, a .zip file, or a prefix in S3."""

from __future__ import annotations

import os
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from blockstore.arrays import check_dtype
from blockstore.bucket import Bucket
from blockstore.errors import ArrayRefused
from encoder.errors import SourceRefused
from encoder.progress import Counter
from encoder.sources.converted import ConvertedSource, RowSpool, missing_library, too_small
from encoder.sources.source import check_matrix

if TYPE_CHECKING:
    from zarr.abc.store import Store

MARKERS = ("zarr.json", ".zarray", ".zgroup")
ZARR_BYTES = 48 << 20  # the library, its event loop, and the codecs' buffers
# A chunk while it is read: compressed, decompressed, and its place in the result.
COPIES = 3
CONCURRENT = 8  # chunks decoded at a time, where memory allows
DAMAGES = (ValueError, RuntimeError, TypeError, KeyError, OSError)


class ZarrSource(ConvertedSource):
    """A Zarr array of two or more dimensions: the first is the rows, the others the columns, in C
    order. Every chunk is decoded once.

    A chunk that is not stored is refused, because a lost one looks the same; `fill_missing` reads
    it as the fill value, which is what writers mean that leave out empty chunks.
    """

    def __init__(
        self, what: str, store: Store, fill_missing: bool, inner: str | None = None
    ) -> None:
        import zarr

        self.description = os.path.basename(os.path.normpath(what))
        self.library_bytes = ZARR_BYTES
        self._fill_missing = fill_missing
        self._note = ""
        try:
            found = zarr.open(store=store, path=inner, mode="r")
        except (*DAMAGES, zarr.errors.BaseZarrError) as exc:
            raise SourceRefused(f"{what}: cannot be opened as a Zarr array: {exc}") from exc
        if isinstance(found, zarr.Group):
            names = ", ".join(sorted(found.array_keys())) or "none"
            raise SourceRefused(
                f"{what}: is a Zarr group: give one of its arrays, {what}/NAME, which are {names}"
            )
        self._array = found
        dtype = np.dtype(found.dtype)
        shape = found.shape
        if len(shape) > 2 and 0 not in shape:
            self._note = f"rows of {' x '.join(map(str, shape[1:]))} entries are read in C order"
            shape = (shape[0], prod(shape[1:]))
        self.shape = check_matrix(what, shape, dtype)
        try:
            self.dtype = check_dtype(dtype).newbyteorder("<")
        except ArrayRefused as exc:
            raise SourceRefused(f"{what}: {exc}") from exc

    @property
    def notes(self) -> tuple[str, ...]:
        """How rows of more than one dimension are read."""
        return (self._note,) if self._note else ()

    def convert(self, spool: RowSpool, memory: int, count: Counter) -> None:
        """Decode chunk by chunk, as many at a time as memory allows."""
        self._check_stored()
        array = self._array
        height, *rest = array.shards or array.chunks
        rows, columns = array.shape[0], array.shape[1:]
        if len(columns) > 1:
            rest = list(columns)  # whole rows
        item = self.dtype.itemsize
        chunk = prod(map(min, array.shards or array.chunks, array.shape)) * item
        wide = min(rest[0], columns[0]) if len(columns) == 1 else 0
        together = wide or prod(columns)
        block = min(height, rows) * together * item
        fits = memory // COPIES // max(block, chunk)
        if fits < 1:
            raise too_small(self, COPIES * max(block, chunk))
        if wide:
            wide *= min(fits, CONCURRENT)
        for row in range(0, rows, height):
            for column in range(0, columns[0], wide) if wide else (0,):
                part = (slice(row, row + height), slice(column, column + wide) if wide else ...)
                values = self._read(part)
                lines = np.ascontiguousarray(values, self.dtype).reshape(len(values), -1)
                spool.write(lines, row, column)
                count.add(lines.nbytes)

    def _read(self, part: tuple[Any, ...]) -> Any:
        from encoder.errors import EncodeError

        try:
            return self._array[part]
        except EncodeError:
            raise
        except DAMAGES as exc:
            rows = part[0]
            raise SourceRefused(
                f"{self.description}: the chunks of rows {rows.start} to {rows.stop - 1} cannot be "
                f"read: {type(exc).__name__}: {exc}; write them again"
            ) from exc

    def _check_stored(self) -> None:
        array = self._array
        whole = array.shards or array.chunks  # what one object holds
        objects = prod(-(-n // size) for n, size in zip(array.shape, whole, strict=True))
        missing = objects - array.nchunks_initialized * prod(array.chunks) // prod(whole)
        if missing and not self._fill_missing:
            raise SourceRefused(
                f"{self.description}: {missing} of its {objects} chunks are not "
                f"stored. If they are meant to hold the fill value {array.fill_value}, say "
                "so (--fill-missing, fill_missing=True); if not, write them"
            )


def is_zarr(path: str) -> bool:
    """Whether a local path is a Zarr array or group: a folder, or (inside) a .zip file."""
    if os.path.isdir(path):
        return any(os.path.exists(os.path.join(path, marker)) for marker in MARKERS)
    archive, _ = split_archive(path)
    return archive is not None


def split_archive(path: str) -> tuple[str | None, str]:
    """("x.zarr.zip", "inner") of a path into a .zip file that holds a Zarr hierarchy, or (None,
    "")."""
    import zipfile

    head, inner = path, ""
    while head and not os.path.exists(head) and os.path.dirname(head) != head:
        head, _, tail = head.rpartition("/")
        inner = f"{tail}/{inner}" if inner else tail
    if not os.path.isfile(head) or not zipfile.is_zipfile(head):
        return None, ""
    with zipfile.ZipFile(head) as archive:
        held = any(name.rpartition("/")[2] in MARKERS for name in archive.namelist())
    return (head, inner) if held else (None, "")


def open_zarr(path: str, fill_missing: bool) -> ZarrSource:
    """Open a local Zarr array."""
    storage = _storage(path)
    archive, inner = (None, "") if os.path.isdir(path) else split_archive(path)
    if archive is None:
        return ZarrSource(path, storage.LocalStore(path, read_only=True), fill_missing)
    store = storage.ZipStore(archive, mode="r", read_only=True)
    return ZarrSource(path, store, fill_missing, inner or None)


def open_bucket_zarr(url: str, bucket: Bucket, prefix: str, fill_missing: bool) -> ZarrSource:
    """Open a Zarr array below a prefix of a bucket."""
    _storage(url)
    from encoder.sources.zarr_bucket import BucketStore

    return ZarrSource(url, BucketStore(bucket, prefix), fill_missing)


def _storage(what: str) -> Any:
    try:
        import zarr.storage
    except ImportError as exc:
        raise SourceRefused(missing_library(what, "zarr", "zarr")) from exc
    return zarr.storage
