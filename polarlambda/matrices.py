"""The encoded matrices of a bucket: list, show, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polarlambda.connect import Place
from polarlambda.errors import BadInput

if TYPE_CHECKING:
    from blockstore.manifest import Manifest


def list_matrices(**place: str | None) -> list[Manifest]:
    """Manifests of all usable matrices, by name. ``place``: see `polarlambda.connect.Place`.

    Cost: a listing and one GET per matrix.
    """
    from blockstore.manifest import list_matrices

    return list_matrices(Place(**place).open_bucket())


def show_matrix(name: str, **place: str | None) -> Manifest:
    """The manifest of one matrix. Raises `MatrixMissing`, `NameRefused`."""
    from blockstore.manifest import load_manifest

    return load_manifest(Place(**place).open_bucket(), name)


def delete_matrix(name: str, **place: str | None) -> int:
    """Delete a matrix, manifest first; returns the number of objects. Raises `MatrixMissing`."""
    from blockstore.manifest import delete_matrix

    return delete_matrix(Place(**place).open_bucket(), name)


def read_companion(name: str, companion: str, **place: str | None) -> bytes:
    """A file that belongs to the rows of a matrix, such as "labels.npy" of one made of images.

    Raises `MatrixMissing`, and `BadInput` for a file that the matrix does not have.
    """
    from blockstore.keys import companion_key
    from blockstore.manifest import load_manifest

    bucket = Place(**place).open_bucket()
    manifest = load_manifest(bucket, name)
    if companion not in manifest.companions:
        has = ", ".join(manifest.companions) or "none"
        raise BadInput(f"matrix {name!r} has no file {companion!r}; it has {has}")
    return bucket.get(companion_key(name, manifest.encoding, companion))


def describe(manifest: Manifest) -> dict[str, Any]:
    """A manifest in the numbers that a person asks for; plain JSON."""
    import numpy as np

    tiles = manifest.tiling.count
    block_bytes = manifest.block_rows * manifest.columns * np.dtype(manifest.dtype).itemsize
    return {
        "name": manifest.name,
        "shape": list(manifest.shape),
        "source_dtype": np.dtype(manifest.source_dtype).name,
        "dtype": np.dtype(manifest.dtype).name,
        "code": manifest.code["name"],
        "workers": manifest.workers,
        "subtasks": manifest.shares.per_worker,
        "data_blocks": manifest.data_blocks,
        "block_rows": manifest.block_rows,
        "block_bytes": block_bytes,
        "tiles_per_block": tiles,
        "tile_rows": manifest.tiling.tile_rows,
        "tile_columns": manifest.tiling.tile_columns,
        "objects": manifest.blocks * tiles + 1,
        "stored_bytes": manifest.blocks * block_bytes,
        "created": manifest.created,
        "encoding": manifest.encoding,
        "source": manifest.source,
        "source_digest": manifest.source_digest,
        "companions": list(manifest.companions),
        **({"derived": manifest.derived.to_json()} if manifest.derived else {}),
    }
