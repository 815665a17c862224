"""Where a product is written part by part, in any order and by any number of processes."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from blockstore import decode_keys
from blockstore.arrays import byte_view, npy_header
from blockstore.bucket import Bucket
from blockstore.runs import RunStore
from blockstore.upload_buffers import UploadBuffers
from blockstore.zarr_format import ZarrRows
from coordinator.cut import NPY, ZARR, Cut, PartRule, cut_product
from coordinator.layout import Layout

__all__ = [
    "WRITERS",
    "Kind",
    "NpyTarget",
    "Target",
    "ZarrTarget",
    "open_target",
    "part_rule",
    "write_product",
]

Kind = Literal["npy", "zarr"]
WHOLE_BYTES = 64 << 20  # of a product that is put as one object
WRITERS = 4  # parts being written at once, each of them copied once


def part_rule(kind: Kind) -> PartRule:
    """What the parts of a product of this kind may be."""
    return NPY if kind == "npy" else ZARR


class Target(Protocol):
    """A product in the store that appears when it is complete."""

    key: str
    upload: str

    def write(self, part: int, rows: NDArray[Any]) -> None:
        """Write a part of the cut, (rows, columns), over the one that is there."""
        ...

    def finish(self) -> None:
        """Make the parts a product; raises `CorruptObject` if one is missing."""
        ...

    def abort(self) -> None:
        """Give the parts up."""
        ...


class NpyTarget:
    """An .npy object, uploaded in parts; `upload` is the id of the upload, begun if it is empty."""

    def __init__(
        self,
        bucket: Bucket,
        key: str,
        layout: Layout,
        dtype: np.dtype[Any],
        cut: Cut,
        upload: str = "",
    ) -> None:
        self.key = key
        self._bucket = bucket
        self._dtype = dtype.newbyteorder("<")
        self._header = npy_header(dtype, layout.shape)
        row_bytes = layout.columns * dtype.itemsize
        self._sizes = {n: (b - a) * row_bytes for n, (a, b) in enumerate(cut.parts, 1)}
        self._sizes[1] += len(self._header)
        self.upload = upload or bucket.start_upload(key)
        self._bodies = UploadBuffers()

    def write(self, part: int, rows: NDArray[Any]) -> None:
        """See `Target.write`."""
        entries = byte_view(np.ascontiguousarray(rows, self._dtype))
        header = self._header if part == 0 else b""
        body, view = self._bodies.make(header, len(entries))
        view[:] = entries
        self._bucket.put_part(self.key, self.upload, part + 1, body)

    def finish(self) -> None:
        """See `Target.finish`."""
        self._bucket.finish_upload(self.key, self.upload, self._sizes)

    def abort(self) -> None:
        """See `Target.abort`."""
        self._bucket.abort_upload(self.key, self.upload)


class ZarrTarget:
    """A Zarr array whose chunks are the parts; its description is written last."""

    upload = ""

    def __init__(
        self, bucket: Bucket, key: str, layout: Layout, dtype: np.dtype[Any], cut: Cut
    ) -> None:
        self.key = key
        self._bucket = bucket
        self._rows = ZarrRows(layout.shape, dtype, cut.parts[0][1])

    def write(self, part: int, rows: NDArray[Any]) -> None:
        """See `Target.write`."""
        self._bucket.put(self._chunk(part), self._rows.body(rows))

    def finish(self) -> None:
        """See `Target.finish`; every chunk was written by somebody who said so."""
        name = decode_keys.zarr_metadata_key(self.key)
        self._bucket.put(name, self._rows.metadata(), content_type="application/json")

    def abort(self) -> None:
        """See `Target.abort`; chunks without a description are no array."""

    def _chunk(self, part: int) -> str:
        return decode_keys.zarr_chunk_key(self.key, part, len(self._rows.shape))


def write_product(store: RunStore, kind: str, value: NDArray[Any]) -> str:
    """Write a product that is in memory as `kind`; its key. Large ones go in parts, side by side,
    so that no second copy of the whole is made."""
    if kind == "npy" and value.nbytes <= WHOLE_BYTES:
        return store.put_final(value)
    npy, columns = kind == "npy", math.prod(value.shape[1:])
    key = decode_keys.product_key(store.run, kind)
    layout = Layout(value.shape, 1, 1, len(value), columns)
    cut = cut_product(layout, value.itemsize, len(value), NPY if npy else ZARR)
    target = open_target(store.bucket, "npy" if npy else "zarr", key, layout, value.dtype, cut)
    rows = value.reshape(-1, columns)

    def write(part: int) -> None:
        first, last = cut.parts[part]
        target.write(part, rows[first:last])

    try:
        with ThreadPoolExecutor(WRITERS, thread_name_prefix="write") as pool:
            for _ in pool.map(write, range(len(cut.parts))):
                pass
        target.finish()
    except BaseException:
        target.abort()
        raise
    return key


def open_target(
    bucket: Bucket,
    kind: Kind,
    key: str,
    layout: Layout,
    dtype: np.dtype[Any],
    cut: Cut,
    upload: str = "",
) -> Target:
    """The target of this kind; `upload` is what it said of itself to others."""
    if kind == "npy":
        return NpyTarget(bucket, key, layout, dtype, cut, upload)
    return ZarrTarget(bucket, key, layout, dtype, cut)
