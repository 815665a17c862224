"""Zarr arrays, written by zarr itself: folders, archives, and objects in S3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from zarr.storage import ZipStore

from blockstore.bucket import Bucket
from encoder import MemoryTooSmall, SourceChanged, SourceRefused
from encoder.sources.zarr_bucket import BucketStore
from polarlambda import plan_matrix
from tests.sources.encoded import encode_path

A = np.random.default_rng(0).integers(1, 256, (53, 17), np.uint8)


def write(path: Path, values: Any = A, chunks: tuple[int, ...] = (10, 6), **options: Any) -> Path:
    array = zarr.create_array(
        store=str(path), shape=values.shape, chunks=chunks, dtype=values.dtype, **options
    )
    array[...] = values
    return path


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"chunks": (100, 100)},
        {"chunks": (1, 17)},
        {"shards": (20, 12)},
        {"zarr_format": 2},
        {"values": A.astype(">f4")},
    ],
)
def test_a_local_array(bucket: Bucket, tmp_path: Path, options: dict[str, Any]) -> None:
    manifest, matrix = encode_path(bucket, write(tmp_path / "a.zarr", **options))
    np.testing.assert_array_equal(matrix, A)
    assert manifest.shape == A.shape


def test_a_plan_reads_the_header_only(tmp_path: Path) -> None:
    write(tmp_path / "a.zarr")
    for chunk in (tmp_path / "a.zarr" / "c").rglob("*"):
        if chunk.is_file():
            chunk.write_bytes(b"")
    encoding, run = plan_matrix(tmp_path / "a.zarr", workers=8, data_blocks=6)
    assert encoding.manifest.shape == A.shape
    assert run.shape == A.shape


def test_an_array_of_a_group_and_the_group_itself(bucket: Bucket, tmp_path: Path) -> None:
    group = zarr.open_group(str(tmp_path / "g.zarr"), mode="w")
    group.create_array("x", data=A)
    group.create_array("y", data=A)
    _, matrix = encode_path(bucket, tmp_path / "g.zarr" / "x")
    np.testing.assert_array_equal(matrix, A)
    with pytest.raises(SourceRefused, match=r"group.*x, y"):
        encode_path(bucket, tmp_path / "g.zarr")


def test_rows_of_more_dimensions_are_read_in_c_order(bucket: Bucket, tmp_path: Path) -> None:
    stack = A[:, :12].reshape(53, 2, 2, 3)
    path = write(tmp_path / "a.zarr", stack, (10, 1, 2, 3))
    manifest, matrix = encode_path(bucket, path)
    np.testing.assert_array_equal(matrix, A[:, :12])
    assert manifest.shape == (53, 12)


@pytest.mark.parametrize("inner", ["", "deep/x"])
def test_an_archive(bucket: Bucket, tmp_path: Path, inner: str) -> None:
    with ZipStore(tmp_path / "a.zip", mode="w") as store:
        zarr.create_array(store=store, name=inner or None, data=A, chunks=(10, 6))
    _, matrix = encode_path(bucket, tmp_path / "a.zip" / inner)
    np.testing.assert_array_equal(matrix, A)


def upload(bucket: Bucket, folder: Path, prefix: str) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            bucket.put(f"{prefix}/{path.relative_to(folder)}", path.read_bytes())


@pytest.mark.parametrize("options", [{}, {"shards": (20, 12)}])
def test_objects_in_s3(bucket: Bucket, tmp_path: Path, options: dict[str, Any]) -> None:
    upload(bucket, write(tmp_path / "a.zarr", **options), "inputs/a.zarr")
    manifest, matrix = encode_path(bucket, "s3://blocks/inputs/a.zarr")
    np.testing.assert_array_equal(matrix, A)
    local, _ = encode_path(bucket, tmp_path / "a.zarr", "local")
    assert local.encoding == manifest.encoding


def test_an_object_that_changes_is_noticed(bucket: Bucket, tmp_path: Path) -> None:
    upload(bucket, write(tmp_path / "a.zarr"), "inputs/a.zarr")
    array = zarr.open_array(store=BucketStore(bucket, "inputs/a.zarr"), mode="r")
    bucket.put("inputs/a.zarr/c/1/1", bucket.get("inputs/a.zarr/c/0/0"))
    with pytest.raises(SourceChanged, match="c/1/1"):
        array[...]


def test_a_chunk_that_is_not_stored_is_an_error_or_meant(bucket: Bucket, tmp_path: Path) -> None:
    path = write(tmp_path / "a.zarr", fill_value=7)
    (path / "c" / "2" / "1").unlink()
    with pytest.raises(SourceRefused, match=r"1 of its 18 chunks.*value 7.*--fill-missing"):
        encode_path(bucket, path)
    assert list(bucket.list("")) == []
    meant = A.copy()
    meant[20:30, 6:12] = 7
    _, matrix = encode_path(bucket, path, fill_missing=True)
    np.testing.assert_array_equal(matrix, meant)


def test_a_damaged_chunk_is_named_by_its_rows(bucket: Bucket, tmp_path: Path) -> None:
    path = write(tmp_path / "a.zarr")
    chunk = path / "c" / "3" / "0"
    chunk.write_bytes(chunk.read_bytes()[:-9])
    with pytest.raises(SourceRefused, match="rows 30 to 39"):
        encode_path(bucket, path)


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        (np.zeros((3, 2), "c8"), "complex"),
        (np.zeros(5), "two-dimensional"),
        (np.zeros((0, 5)), "empty"),
    ],
)
def test_arrays_that_are_no_matrix(bucket: Bucket, tmp_path: Path, values: Any, rule: str) -> None:
    with pytest.raises(SourceRefused, match=rule):
        encode_path(bucket, write(tmp_path / "a.zarr", values, (2,) * values.ndim))


def test_chunks_larger_than_the_memory_are_refused_with_the_number(
    bucket: Bucket, tmp_path: Path
) -> None:
    path = tmp_path / "a.zarr"
    zarr.create_array(store=str(path), shape=(4000, 9000), chunks=(4000, 9000), dtype="f4")
    with pytest.raises(MemoryTooSmall, match="at least"):
        encode_path(bucket, path, fill_missing=True, memory=256 << 20)


def test_options_of_other_sources_are_refused(bucket: Bucket, tmp_path: Path) -> None:
    with pytest.raises(SourceRefused, match="do not apply"):
        encode_path(bucket, write(tmp_path / "a.zarr"), columns=("a",))
    np.save(tmp_path / "a.npy", A)
    with pytest.raises(SourceRefused, match="do not apply"):
        encode_path(bucket, tmp_path / "a.npy", fill_missing=True)
