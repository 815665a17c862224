"""Reads coded tiles back past the code under test, and decodes them densely."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.bucket import Bucket
from blockstore.manifest import Manifest
from polarcodes import code_from_manifest


def coded_blocks(bucket: Bucket, manifest: Manifest) -> NDArray[Any]:
    """The coded blocks (N, b, d), put together from the objects by NumPy's own reader."""
    blocks = np.zeros(
        (manifest.workers, manifest.block_rows, manifest.columns), np.dtype(manifest.dtype)
    )
    for worker in range(manifest.workers):
        for tile in range(manifest.tiling.count):
            key = f"matrices/{manifest.name}/coded/{manifest.encoding}/{worker:05d}/{tile:04d}.npy"
            body = bucket.client.get_object(Bucket=bucket.name, Key=key)["Body"].read()
            span = manifest.tiling.span(tile)
            data = np.load(io.BytesIO(body), allow_pickle=False)
            assert data.dtype == blocks.dtype
            blocks[worker, span.row0 : span.row1, span.col0 : span.col1] = data
    return blocks


def oracle(matrix: NDArray[Any], manifest: Manifest) -> NDArray[Any]:
    """The dense generator times the zero-padded data blocks, in exact integers or float64."""
    code = code_from_manifest(manifest.code)
    s, b = manifest.data_blocks, manifest.block_rows
    wide = object if matrix.dtype.kind in "biu" else np.float64
    padded = np.zeros((s * b, matrix.shape[1]), wide)
    padded[: len(matrix)] = matrix.astype(int if wide is object else wide)
    generator = code.generator()
    if wide is object:
        generator = np.rint(generator).astype(int).astype(object)
    return (generator @ padded.reshape(s, -1)).reshape(manifest.workers, b, -1)


def decoded(blocks: NDArray[Any], manifest: Manifest) -> NDArray[Any]:
    """The matrix, from the coded blocks of all workers by the code's own decoder."""
    code = code_from_manifest(manifest.code)
    rows = code.plan(range(code.workers)).apply(blocks.reshape(code.workers, -1))
    return rows.reshape(-1, manifest.columns)[: manifest.rows]
