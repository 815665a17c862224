"""A source that changes between the two passes is noticed before anything wrong is stored."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blockstore.bucket import Bucket
from encoder import SourceChanged, encode
from polarcodes import make_code

CODE = make_code("polar", workers=8, data_blocks=5)
RNG = np.random.default_rng(0)
A = RNG.integers(0, 256, (23, 9)).astype("u1")
B = RNG.integers(0, 256, (23, 9)).astype("u1")


def stored_keys(bucket: Bucket) -> set[str]:
    return {info.key for info in bucket.list("")}


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_file_that_changes_between_the_passes_is_noticed_before_anything_is_written(
    bucket: Bucket, tmp_path: Path, order: Any
) -> None:
    path = tmp_path / "a.npy"
    np.save(path, A.astype("u1", order=order))
    state = os.stat(path)

    def change(progress: Any) -> None:
        if progress.phase == "encode":
            with open(path, "r+b") as file:
                file.seek(-1, os.SEEK_END)
                file.write(b"\xff")
            os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1))

    with pytest.raises(SourceChanged, match=r"a\.npy"):
        encode(path, bucket, "m", CODE, progress=change)
    assert stored_keys(bucket) == set()


def test_a_file_that_is_cut_while_it_is_read_is_noticed(bucket: Bucket, tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, A)

    def cut(progress: Any) -> None:
        os.truncate(path, 150)

    with pytest.raises(SourceChanged, match=r"a\.npy"):
        encode(path, bucket, "m", CODE, progress=cut)
    assert stored_keys(bucket) == set()


def test_an_object_that_is_replaced_while_it_is_read_is_noticed(
    bucket: Bucket, tmp_path: Path
) -> None:
    for matrix, name in ((A, "a"), (B, "b")):
        np.save(tmp_path / f"{name}.npy", matrix)
    bucket.put("inputs/a.npy", (tmp_path / "a.npy").read_bytes())

    def change(progress: Any) -> None:
        if progress.phase == "scan":
            bucket.put("inputs/a.npy", (tmp_path / "b.npy").read_bytes())

    with pytest.raises(SourceChanged, match=r"s3://blocks/inputs/a\.npy"):
        encode("s3://blocks/inputs/a.npy", bucket, "m", CODE, progress=change)
    assert stored_keys(bucket) == {"inputs/a.npy"}
