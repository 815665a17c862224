"""A product on disk: copied from the bucket some rows at a time, whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from blockstore import decode_keys
from blockstore.arrays import byte_view, npy_header
from blockstore.zarr_format import ZarrRows

if TYPE_CHECKING:
    from blockstore.products import StoredProduct

STEP_BYTES = 8 << 20
ZARR = ".zarr"


def is_zarr(path: Path) -> bool:
    """Whether a product at `path` is to be a Zarr array."""
    return path.suffix == ZARR


def write_product(path: Path, product: np.ndarray[Any, Any] | StoredProduct) -> Path:
    """Write a product in memory, or one in the bucket, as .npy or, for names in `.zarr`, as a Zarr
    array; the path. Memory besides the product: some rows."""
    if is_zarr(path):
        _write_zarr(path, product)
    else:
        with replacing(path) as new, new.open("wb") as file:
            file.write(npy_header(product.dtype, product.shape))
            for rows in _rows(product):
                file.write(byte_view(rows))
    return path


@contextmanager
def replacing(path: Path, *, folder: bool = False) -> Iterator[Path]:
    """A new file or folder that takes the place of `path` when the context ends well.

    The old one stays otherwise. It has the permissions of any new file.
    """
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as scratch:
        new = Path(scratch) / "new"
        if folder:
            new.mkdir()
        yield new
        if folder and path.exists():
            shutil.rmtree(path)
        os.replace(new, path)


def _write_zarr(path: Path, product: np.ndarray[Any, Any] | StoredProduct) -> None:
    with replacing(path, folder=True) as new:
        step = _step(product)
        layout = ZarrRows(product.shape, np.dtype(product.dtype), min(step, product.shape[0]))
        for number, rows in enumerate(_rows(product)):
            chunk = new / decode_keys.zarr_chunk_key("", number, len(product.shape))
            chunk.parent.mkdir(parents=True, exist_ok=True)
            chunk.write_bytes(layout.body(rows))
        (new / decode_keys.zarr_metadata_key("")).write_bytes(layout.metadata())


def _rows(product: np.ndarray[Any, Any] | StoredProduct) -> Iterator[np.ndarray[Any, Any]]:
    """The product's rows in order, in C order and little endian, `_step` of them at a time."""
    if not isinstance(product, np.ndarray):
        yield from product.rows()
        return
    step = _step(product)
    for first in range(0, product.shape[0], step):
        rows = product[first : first + step]
        yield np.ascontiguousarray(rows, product.dtype.newbyteorder("<"))


def _step(product: np.ndarray[Any, Any] | StoredProduct) -> int:
    if not isinstance(product, np.ndarray):
        return product.step
    row = max(1, product.nbytes // max(1, product.shape[0]))
    return max(1, STEP_BYTES // row)
