"""The digest of a source: a tree, so that parts of it can be hashed anywhere and at the same time.

    leaf k  = SHA-256(bytes k L to (k + 1) L of the entries),  L = 8 MiB
    digest  = SHA-256(tag, .npy header, leaf 0, leaf 1, ..., then name and content digests of
              the companions, by name)

The entries are little endian and in the source's own order, C or Fortran: the same matrix in both
orders has two digests. Leaves depend on the entries alone, not on who read how much at a time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from blockstore.arrays import npy_header

LEAF_BYTES = 8 << 20
_TAG = b"polarlambda source, leaves of 8 MiB, version 2\n"


def leaf_count(shape: tuple[int, int], dtype: np.dtype[Any]) -> int:
    """Number of leaves of a matrix."""
    return -(-shape[0] * shape[1] * dtype.itemsize // LEAF_BYTES)


def leaf_span(leaf: int, shape: tuple[int, int], dtype: np.dtype[Any]) -> tuple[int, int]:
    """The entries of a leaf, counted in the order in which they are stored, the end excluded."""
    entries = LEAF_BYTES // dtype.itemsize
    return leaf * entries, min((leaf + 1) * entries, shape[0] * shape[1])


def source_digest(
    shape: tuple[int, int],
    dtype: np.dtype[Any],
    order: str,
    leaves: Iterable[bytes],
    companions: Mapping[str, bytes],
) -> str:
    """ "sha256-tree:..." of a matrix whose leaves have these digests."""
    digest = hashlib.sha256(_TAG + npy_header(dtype, shape, fortran=order == "F"))
    for leaf in leaves:
        digest.update(leaf)
    for name in sorted(companions):
        digest.update(hashlib.sha256(name.encode()).digest())
        digest.update(hashlib.sha256(companions[name]).digest())
    return "sha256-tree:" + digest.hexdigest()
