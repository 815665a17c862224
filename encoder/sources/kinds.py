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
    if options.images or options.columns or url.lower().endswith((*SUFFIXES, ".tar")):
        raise _from_disk(url)
    bucket, key = split_url(url, client)
    if _is_zarr_prefix(bucket, key):
        replace(options, fill_missing=False).need_none(url)
        return open_bucket_zarr(url, bucket, key, options.fill_missing)
    options.need_none(url)
    if _is_folder(bucket, key):
        raise _from_disk(url)
    return ObjectSource(url, client)


def _from_disk(url: str) -> SourceRefused:
    """The refusal of what functions cannot read as it lies in S3, with the commands that help."""
    name = url.rpartition("/")[2]
    whole = "." in name and not set(name) & set("{}*")
    folder = url if "." not in name else url.rpartition("/")[0]
    copy = f"aws s3 cp {url} ." if whole else f"aws s3 sync {folder.rstrip('/')}/ FOLDER/"
    return SourceRefused(
        f"{url}: images, shards and Parquet are read from this machine's disk, not from S3: copy "
        f"them ({copy}) and encode the copy here (--on local)"
    )


def _is_folder(bucket: Bucket, key: str) -> bool:
    """Objects lie below the key, and none at it."""
    if key.endswith(".npy") or bucket.head(key) is not None:
        return False
    return next(bucket.list(f"{key.rstrip('/')}/"), None) is not None


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
