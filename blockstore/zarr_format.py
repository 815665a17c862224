"""A Zarr v3 array of rows, written chunk by chunk without the zarr library.

The part of the specification (https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html) that
a product needs: one array, a regular grid of chunks of whole rows, little-endian bytes without
compression. A chunk that is missing would be read as the fill value, which is NaN: never as zeros.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore import documents
from blockstore.documents import Fields
from blockstore.errors import CorruptObject

__all__ = ["ZarrRows"]

_TYPES = {"float32": "<f4", "float64": "<f8"}


@dataclass(frozen=True)
class ZarrRows:
    """shape: (n,) or (n, k); dtype: float32 or float64; chunk_rows: rows of a chunk."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    chunk_rows: int

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return -(-self.shape[0] // self.chunk_rows)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return math.prod(self.shape[1:]) * self.dtype.itemsize

    def body(self, rows: NDArray[Any]) -> bytes:
        """The bytes of a chunk; one that ends beyond the array is filled up with NaN."""
        little = np.ascontiguousarray(rows, self.dtype.newbyteorder("<"))
        missing = self.chunk_rows * math.prod(self.shape[1:]) - little.size
        if missing == 0:
            return little.tobytes()
        return little.tobytes() + np.full(missing, np.nan, little.dtype).tobytes()

    def metadata(self) -> bytes:
        """zarr.json."""
        chunk = [self.chunk_rows, *self.shape[1:]]
        return documents.dump(
            {
                "zarr_format": 3,
                "node_type": "array",
                "shape": list(self.shape),
                "data_type": self.dtype.name,
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
                "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
                "fill_value": "NaN",
                "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
                "attributes": {},
            }
        )

    @classmethod
    def parse(cls, body: bytes) -> ZarrRows:
        """Read zarr.json; raises `CorruptObject` for what `metadata` does not write."""
        document: Mapping[str, Any] = documents.parse(body, "zarr.json", CorruptObject)
        fields = Fields(document, "zarr.json", CorruptObject)
        shape = fields.integers("shape", low=1)
        name = fields.choice("data_type", tuple(_TYPES))
        grid = Fields(
            fields.object("chunk_grid").get("configuration"), "zarr.json's grid", CorruptObject
        )
        chunk = grid.integers("chunk_shape", low=1)
        if chunk[1:] != shape[1:] or len(shape) not in (1, 2):
            raise fields.fail("chunk_grid", "chunks of whole rows")
        found = cls(shape, np.dtype(_TYPES[name]), chunk[0])
        if documents.parse(found.metadata(), "zarr.json", CorruptObject) != document:
            raise CorruptObject("zarr.json: is not one that a product is written with")
        return found
