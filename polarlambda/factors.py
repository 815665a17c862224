"""The two factors of a matrix product: arrays, files, objects, or matrices encoded already."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polarlambda.errors import BadInput

if TYPE_CHECKING:
    from blockstore.bucket import Bucket
    from blockstore.manifest import Manifest
    from coordinator.planned_pairs import Factor
    from encoder import Source
    from polarcodes import ErasureCode
    from polarlambda.encoding import MatrixSource

__all__ = ["FactorInput", "check_factors", "open_factor", "parse_pair"]


@dataclass(frozen=True)
class FactorInput:
    """A or B. `shape`: as it is multiplied, B not transposed; `order` and `dtype` as stored.

    manifest : of a matrix that is encoded already (of B^T for B), else None and `source` is to be
    encoded.
    """

    side: str
    shape: tuple[int, int]
    dtype: str
    order: str
    source: MatrixSource | None = None
    manifest: Manifest | None = None

    @property
    def factor(self) -> Factor:
        """What is encoded: A by rows, B by columns."""
        import numpy as np

        from coordinator.planned_pairs import Factor

        rows, inner = self.shape if self.side == "A" else self.shape[::-1]
        order = self.order if self.side == "A" else {"C": "F", "F": "C"}[self.order]
        return Factor(rows, inner, np.dtype(self.dtype), order)

    @property
    def code(self) -> ErasureCode | None:
        """The code of a matrix that is encoded already."""
        from polarcodes import code_from_manifest

        return None if self.manifest is None else code_from_manifest(self.manifest.code)


def open_factor(side: str, given: MatrixSource, bucket: Bucket | None) -> FactorInput:
    """Look at A or B: header only, or the manifest of the name. `side`: "A" or "B".

    Text that is no file, has no slash and does not end in .npy is the name of a matrix encoded
    already, with `encode --transpose` if it is B. Raises `BadInput`, `MatrixMissing`,
    `SourceRefused`.
    """
    from encoder import SourceRefused

    if bucket is not None and _is_name(given):
        return _encoded(side, str(given), bucket)
    try:
        with open_input(given, bucket) as opened:
            return FactorInput(side, opened.shape, opened.dtype.str, opened.order, source=given)
    except SourceRefused as error:
        raise SourceRefused(f"{side}: {error}") from error


def open_input(given: MatrixSource, bucket: Bucket | None) -> Source:
    """The source itself, to be read and closed."""
    from encoder import open_source

    if bucket is None and isinstance(given, str) and given.startswith("s3://"):
        from blockstore.connect import s3_client

        return open_source(given, s3_client())
    return open_source(given, bucket.client if bucket is not None else None)


def check_factors(left: FactorInput, right: FactorInput) -> None:
    """Raise `BadInput` unless A has as many columns as B has rows."""
    if left.shape[1] != right.shape[0]:
        raise BadInput(
            f"A has shape {left.shape} and B has shape {right.shape}: the inner dimensions "
            f"{left.shape[1]} and {right.shape[0]} must be equal"
        )


def parse_pair(name: str, given: Any) -> tuple[int, int] | None:
    """Two sizes, from a pair or from text such as "16x16". Raises `BadInput`."""
    if given is None:
        return None
    sizes = given
    if isinstance(given, str):
        match = re.fullmatch(r"\s*(\d+)\s*[x×,]\s*(\d+)\s*", given)
        sizes = (int(match[1]), int(match[2])) if match else None
    fits = isinstance(sizes, tuple | list) and len(sizes) == 2
    if not fits or not all(type(size) is int and size >= 1 for size in sizes):
        raise BadInput(f"{name} must be two sizes of at least 1 such as 16x16, got {given!r}")
    return sizes[0], sizes[1]


def _encoded(side: str, name: str, bucket: Bucket) -> FactorInput:
    from blockstore.manifest import load_manifest

    manifest = load_manifest(bucket, name)
    derived = manifest.derived.kind if manifest.derived is not None else None
    if side == "B" and derived != "transpose":
        raise BadInput(
            f"B: {name!r} is not the transpose of a matrix, and B is coded by its columns: encode "
            f"it with `polarlambda encode B.npy {name} --transpose --replace`"
        )
    if manifest.subtasks is not None:
        raise BadInput(
            f"{side}: {name!r} has several blocks for each worker: encode it without --subtasks"
        )
    shape = manifest.shape if side == "A" else manifest.shape[::-1]
    order = manifest.tiling.order if side == "A" else {"C": "F", "F": "C"}[manifest.tiling.order]
    return FactorInput(side, shape, manifest.source_dtype, order, manifest=manifest)


def _is_name(given: Any) -> bool:
    if not isinstance(given, str):
        return False
    looks_like_path = "/" in given or os.sep in given or given.endswith((".npy", ".npz"))
    return not looks_like_path and not Path(given).is_file()
