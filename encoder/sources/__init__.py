"""Where a matrix comes from: an .npy file, an .npy object in S3, or an array in memory.

Files and objects are read by bounded reads rather than mapped: the pages of a mapped file count in
the process's memory.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encoder.errors import SourceRefused
from encoder.sources.array import ArraySource
from encoder.sources.npy import S3_SCHEME, FileSource, ObjectSource
from encoder.sources.source import Source, check_matrix

__all__ = ["S3_SCHEME", "Source", "check_matrix", "open_source"]


def open_source(source: str | os.PathLike[str] | NDArray[Any], client: Any = None) -> Source:
    """Open a path to an .npy file, an "s3://bucket/key" URL of one, or an array.

    `client` is the S3 client for URLs. Raises `SourceRefused` for anything but a non-empty real
    two-dimensional array: pickles (never loaded), archives, objects, text, dates, complex numbers,
    masked arrays, and files shorter or longer than their header says.
    """
    if isinstance(source, np.ndarray):
        return ArraySource(source)
    if isinstance(source, str) and source.startswith(S3_SCHEME):
        return ObjectSource(source, client)
    if isinstance(source, str | os.PathLike):
        return FileSource(os.fspath(source))
    raise SourceRefused(
        f"the source must be an array, a path or an s3:// URL, got {type(source).__name__}; "
        "convert it with numpy.asarray"
    )
