"""Which kind of source a path or URL names."""

from __future__ import annotations

import os
import zipfile
from dataclasses import replace
from typing import Any

from blockstore.bucket import Bucket
from encoder.errors import SourceRefused
from encoder.sources.images import ImageSource
from encoder.sources.npy import FileSource, ObjectSource, split_url
from encoder.sources.options import SourceOptions
from encoder.sources.parquet import SUFFIXES, ParquetSource, is_parquet
from encoder.sources.source import Source
from encoder.sources.zarr_array import MARKERS, is_zarr, open_bucket_zarr, open_zarr


def open_path(path: str, options: SourceOptions) -> Source:
    """Open a file or folder on this machine."""
    if options.images and options.size is not None:
        return ImageSource(path, options.size, options.skip_broken)
    if is_zarr(path):
        replace(options, fill_missing=False).need_none(path)
        return open_zarr(path, options.fill_missing)
    if is_parquet(path):
        replace(options, columns=()).need_none(path)
        return ParquetSource(path, options.columns)
    options.need_none(path)
    if os.path.isdir(path):
        raise SourceRefused(
            f"{path}: is a folder, and neither a Zarr array nor Parquet files: for a folder of "
            "images give --images and --size"
        )
    _refuse_npz(path)
    return FileSource(path)


def open_url(url: str, client: Any, options: SourceOptions) -> Source:
    """Open an object, or a Zarr array below a prefix."""
    if options.images or url.lower().endswith((*SUFFIXES, ".tar")):
        raise SourceRefused(
            f"{url}: images and Parquet are read from this machine's disk: copy it first, for "
            "example with aws s3 sync"
        )
    bucket, key = split_url(url, client)
    if _is_zarr_prefix(bucket, key):
        replace(options, fill_missing=False).need_none(url)
        return open_bucket_zarr(url, bucket, key, options.fill_missing)
    options.need_none(url)
    return ObjectSource(url, client)


def _is_zarr_prefix(bucket: Bucket, key: str) -> bool:
    if key.endswith(".npy"):
        return False
    return any(bucket.head(f"{key.rstrip('/')}/{marker}") is not None for marker in MARKERS)


def _refuse_npz(path: str) -> None:
    """Refuse an .npz archive by the arrays it holds, with what makes an .npy file of one."""
    if not os.path.isfile(path) or not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as archive:
        names = [n.removesuffix(".npy") for n in archive.namelist() if n.endswith(".npy")]
    if names:
        raise SourceRefused(
            f"{path}: this is an .npz archive (of {', '.join(names)}), which cannot be read in "
            f"parts: take one array out of it, for example numpy.save('{names[0]}.npy', "
            f"numpy.load('{os.path.basename(path)}')['{names[0]}'])"
        )
