"""Codes whose encoder is no transform in place on slots, in memory and through the spool."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blockstore.bucket import Bucket
from encoder import encode
from polarcodes import make_code
from tests.encoder.decoding import coded_blocks, decoded, oracle

CODES: dict[str, tuple[str, int, int, dict[str, Any]]] = {
    "berrut": ("berrut", 9, 6, {}),
    "hadamard, rotated": ("hadamard", 8, 6, {}),
    "hadamard, one round": ("hadamard", 8, 5, {"rounds": 1}),
    "hadamard, punctured": ("hadamard", 11, 8, {}),
    "lt": ("lt", 12, 6, {}),
    "mds": ("mds", 9, 6, {}),
    "polar": ("polar", 8, 6, {}),
    "product": ("product", 9, 4, {}),
    "product, two parities": ("product", 16, 4, {}),
    "replication": ("replication", 7, 3, {}),
    "uncoded": ("uncoded", 5, 5, {}),
}


@pytest.mark.parametrize("dtype", ["u1", "f4", "f8"])
@pytest.mark.parametrize("case", CODES)
def test_what_is_stored_is_the_generator_times_the_blocks(
    bucket: Bucket, case: str, dtype: str, tmp_path: Path
) -> None:
    name, workers, blocks, options = CODES[case]
    code = make_code(name, workers=workers, data_blocks=blocks, seed=2, **options)
    rng = np.random.default_rng(0)
    matrix = (rng.random((41, 3)) * 200).astype(dtype)
    manifest = encode(matrix, bucket, "m", code, spool=tmp_path)
    stored = coded_blocks(bucket, manifest)
    if stored.dtype.kind in "iu":
        assert (stored.astype(object) == oracle(matrix, manifest)).all()
    else:
        exact = oracle(matrix.astype("f8"), manifest)
        tolerance = 30 * float(np.finfo(stored.dtype).eps) * np.abs(exact).max()
        np.testing.assert_allclose(stored, exact, rtol=0, atol=tolerance)
    back = decoded(stored.astype("f8"), manifest)
    assert np.linalg.norm(back - matrix) <= 1e-5 * np.linalg.norm(matrix.astype("f8"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("case", CODES)
def test_encoding_in_place_needs_the_scratch_that_the_memory_account_has(case: str) -> None:
    name, workers, blocks, options = CODES[case]
    code = make_code(name, workers=workers, data_blocks=blocks, seed=2, **options)
    buffer = np.ones((workers, 1 << 18), np.float32)  # 1 MiB a worker
    frozen = np.setdiff1d(np.arange(workers), code.slots)
    buffer[frozen] = 0
    tracemalloc.start()
    try:
        code.encode_inplace(buffer)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 3 << 19, "about 1 MiB, whatever the length of the rows"
