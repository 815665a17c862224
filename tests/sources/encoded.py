"""What the encoder made of a source, read back as a matrix."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore import keys
from blockstore.bucket import Bucket
from blockstore.manifest import Manifest
from encoder import SourceOptions, encode, open_source
from polarcodes import make_code
from tests.encoder.decoding import coded_blocks, decoded

CODE = make_code("polar", workers=8, data_blocks=5)


def encode_path(
    bucket: Bucket, source: str | Path, name: str = "m", **options: Any
) -> tuple[Manifest, NDArray[Any]]:
    """Encode a path or URL; (manifest, the matrix decoded from what is stored)."""
    arguments = {
        key: options.pop(key)
        for key in ("memory", "progress", "replace", "spool")
        if key in options
    }
    with open_source(str(source), bucket.client, SourceOptions(**options)) as opened:
        manifest = encode(opened, bucket, name, CODE, **arguments)
    return manifest, decoded(coded_blocks(bucket, manifest), manifest)


def companion(bucket: Bucket, manifest: Manifest, name: str) -> bytes:
    """The content of a companion."""
    assert name in manifest.companions
    return bucket.get(keys.companion_key(manifest.name, manifest.encoding, name))


def labels(bucket: Bucket, manifest: Manifest) -> list[int]:
    """The labels of the rows."""
    body = companion(bucket, manifest, "labels.npy")
    array = np.load(io.BytesIO(body), allow_pickle=False)
    assert array.dtype == np.int64
    return array.tolist()
