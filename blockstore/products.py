"""A product that lies in the store, read some rows at a time: an .npy object or a Zarr array."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from blockstore import decode_keys
from blockstore.arrays import MAX_HEADER, PREAMBLE, header_bytes, parse_header
from blockstore.errors import CorruptObject
from blockstore.zarr_format import ZarrRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from blockstore.bucket import Bucket

__all__ = ["StoredProduct"]

STEP_BYTES = 8 << 20


@dataclass(frozen=True)
class StoredProduct:
    """shape: (n,) or (n, k); step: rows read at a time. `key`: of the .npy, or prefix of the Zarr
    array, whose chunks are `step` rows then. etag: of the .npy when it was opened."""

    bucket: Bucket
    key: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    step: int
    offset: int = 0
    etag: str = ""

    @classmethod
    def open(cls, bucket: Bucket, key: str) -> StoredProduct:
        """Look at what lies at `key`. Raises `ObjectMissing`, `CorruptObject`, `ArrayRefused`."""
        if key.endswith("/"):
            rows = ZarrRows.parse(bucket.get(decode_keys.zarr_metadata_key(key)))
            return cls(bucket, key, rows.shape, rows.dtype, rows.chunk_rows)
        found = bucket.peek(key, 256)
        head = found.head
        length = header_bytes(head[: MAX_HEADER + PREAMBLE])
        if length > len(head):
            head = bucket.get(key, first=0, last=length - 1, if_match=found.etag)
        header = parse_header(head)
        if header.fortran and len(header.shape) > 1:
            raise CorruptObject(f"s3://{bucket.name}/{key}: a product lies in C order")
        if found.size != header.offset + header.data_bytes:
            raise CorruptObject(
                f"s3://{bucket.name}/{key}: {header.offset + header.data_bytes} bytes are "
                f"announced, there are {found.size}"
            )
        row_bytes = header.dtype.itemsize * math.prod(header.shape[1:])
        step = max(1, STEP_BYTES // max(1, row_bytes))
        return cls(bucket, key, header.shape, header.dtype, step, header.offset, found.etag)

    @property
    def data_bytes(self) -> int:
        """Bytes of the entries."""
        return math.prod(self.shape) * self.dtype.itemsize

    def rows(self) -> Iterator[NDArray[Any]]:
        """The product from its first row to its last, `step` rows at a time.

        Raises `ObjectChanged` if it is replaced meanwhile.
        """
        row_bytes = self.dtype.itemsize * math.prod(self.shape[1:])
        for number, first in enumerate(range(0, self.shape[0], self.step)):
            count = min(self.step, self.shape[0] - first)
            if self.key.endswith("/"):
                name = decode_keys.zarr_chunk_key(self.key, number, len(self.shape))
                body = self.bucket.get(name)
                if len(body) != self.step * row_bytes:
                    raise CorruptObject(f"s3://{self.bucket.name}/{name}: has {len(body)} bytes")
            else:
                start = self.offset + first * row_bytes
                last = start + count * row_bytes - 1
                body = self.bucket.get(self.key, first=start, last=last, if_match=self.etag)
            flat = np.frombuffer(body, self.dtype, count * math.prod(self.shape[1:]))
            yield flat.reshape(count, *self.shape[1:])

    def load(self) -> NDArray[Any]:
        """All of it."""
        whole = np.empty(self.shape, self.dtype)
        first = 0
        for rows in self.rows():
            whole[first : first + len(rows)] = rows
            first += len(rows)
        return whole
