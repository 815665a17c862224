"""Where a matrix comes from: .npy, images, Zarr, Parquet, or an array in memory.

Files and objects are read by bounded reads rather than mapped: the pages of a mapped file count in
the process's memory. What must be decoded is decoded once, see `encoder.sources.converted`.
Libraries of other formats are imported when a source of theirs is opened, and not before.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encoder.errors import SourceRefused
from encoder.sources.array import ArraySource
from encoder.sources.kinds import open_path, open_url
from encoder.sources.npy import S3_SCHEME, ObjectSource
from encoder.sources.options import SourceOptions
from encoder.sources.source import Source, check_matrix

__all__ = ["S3_SCHEME", "ObjectSource", "Source", "SourceOptions", "check_matrix", "open_source"]


def open_source(
    source: str | os.PathLike[str] | NDArray[Any],
    client: Any = None,
    options: SourceOptions | None = None,
) -> Source:
    """Open a path, an "s3://bucket/key" URL, or an array.

    A path is an .npy file, a Zarr array (folder or .zip), Parquet (file or folder), or with
    `options.images` a folder or shards of images; a URL is an .npy object or a Zarr array.
    `client` is the S3 client for URLs. Raises `SourceRefused` for anything but a non-empty real
    two-dimensional array: pickles (never loaded), archives, objects, text, dates, complex numbers,
    masked arrays, and files shorter or longer than their header says; and for options that do not
    belong to the source. The shape of a source with `options.skip_broken` is final after
    `Source.prepare`.
    """
    chosen = options or SourceOptions()
    if isinstance(source, np.ndarray):
        chosen.need_none("array")
        return ArraySource(source)
    if isinstance(source, str) and source.startswith(S3_SCHEME):
        return open_url(source, client, chosen)
    if isinstance(source, str | os.PathLike):
        return open_path(os.fspath(source), chosen)
    raise SourceRefused(
        f"the source must be an array, a path or an s3:// URL, got {type(source).__name__}; "
        "convert it with numpy.asarray"
    )
