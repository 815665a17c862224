"""Objects, bytes and dollars of a coded matrix in S3."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blockstore.manifest import Manifest
from coordinator.cost import Cost, Usage, cost
from coordinator.prices import Prices

HEADER_BYTES = 128  # of an .npy file
LIST_PAGE = 1_000
GB = 1 << 30


@dataclass(frozen=True)
class Stored:
    """A coded matrix in S3; sizes in bytes. `tile_bytes` is the largest object."""

    block_bytes: int
    tile_bytes: int
    objects_per_worker: int
    objects: int
    storage_bytes: int

    @property
    def encode_usage(self) -> Usage:
        """Requests of one encoding: HEADs of the bucket (twice) and of the manifest; lists of other
        encodings and of tiles, before and after; PUTs of tiles and manifest."""
        lists = 2 + max(1, -(-self.objects // LIST_PAGE))
        return Usage(puts=self.objects + 1, gets=3, lists=lists)

    def month(self, prices: Prices) -> Cost:
        """Storage of one month."""
        return cost(Usage(storage_gb_months=self.storage_bytes / GB), prices)


def stored(manifest: Manifest) -> Stored:
    """What lies in S3 once the matrix that `manifest` describes is encoded."""
    tiling, itemsize = manifest.tiling, np.dtype(manifest.dtype).itemsize
    block = tiling.rows * tiling.columns * itemsize
    objects = manifest.blocks * tiling.count
    return Stored(
        block_bytes=block,
        tile_bytes=tiling.bytes(itemsize) + HEADER_BYTES,
        objects_per_worker=tiling.count * manifest.shares.per_worker,
        objects=objects,
        storage_bytes=manifest.blocks * block + objects * HEADER_BYTES,
    )
