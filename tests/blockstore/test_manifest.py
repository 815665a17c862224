from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from blockstore import keys
from blockstore.bucket import Bucket
from blockstore.errors import ManifestError, MatrixMissing, NameRefused
from blockstore.manifest import (
    Manifest,
    delete_matrix,
    list_matrices,
    load_manifest,
    save_manifest,
)
from blockstore.tiling import Tiling


def manifest(name: str = "m", **changes: Any) -> Manifest:
    fields: dict[str, Any] = {
        "name": name,
        "created": "2025-01-01T00:00:00+00:00",
        "rows": 10,
        "columns": 4,
        "source_dtype": "|u1",
        "block_rows": 4,
        "dtype": "<i2",
        "tiling": Tiling(4, 4, 2, 4),
        "code": {"name": "polar", "workers": 4, "data_blocks": 3},
        "encoding": "0123456789abcdef",
        "source_digest": "sha256:0",
        "source": "a.npy",
    }
    return Manifest(**(fields | changes))


def test_json_round_trip() -> None:
    m = manifest()
    assert Manifest.from_json(m.to_json()) == m
    assert Manifest.from_json(json.loads(m.to_json())) == m
    assert (m.workers, m.data_blocks, m.shape) == (4, 3, (10, 4))


def test_the_digest_covers_every_field() -> None:
    m = manifest()
    assert m.digest == manifest().digest
    assert m.digest != manifest(encoding="f" * 16).digest
    assert m.digest != manifest(created="2025-01-02T00:00:00+00:00").digest


OPTIONAL = ("subtasks", "derived", "companions")


@pytest.mark.parametrize(
    "field", [f.name for f in dataclasses.fields(Manifest) if f.name not in OPTIONAL]
)
def test_a_missing_field_is_named(field: str) -> None:
    document = json.loads(manifest().to_json())
    del document[field]
    with pytest.raises(ManifestError, match=field):
        Manifest.from_json(document)


@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [
        ("version", 2, "another version"),
        ("version", True, "version"),
        ("rows", 0, "rows"),
        ("rows", 10.0, "rows"),
        ("rows", 13, "rows a block"),
        ("block_rows", 5, "rows a block"),
        ("columns", 5, "tiling covers"),
        ("companions", "labels.npy", "companions"),
        ("companions", [1], "companions"),
        ("dtype", "O", "dtype"),
        ("dtype", "complex64", "dtype"),
        ("dtype", "nonsense", "dtype"),
        ("source_dtype", "<U3", "source_dtype"),
        ("name", "a/b", "slash"),
        ("encoding", "../../other", "encoding"),
        ("encoding", 3, "encoding"),
        ("code", [], "code"),
        ("code", {"workers": 4}, "data_blocks"),
        ("code", {"workers": 4, "data_blocks": 5}, "data_blocks"),
        ("tiling", None, "tiling"),
        ("source", None, "source"),
    ],
)
def test_a_wrong_field_is_named(field: str, value: object, shown: str) -> None:
    document = json.loads(manifest().to_json()) | {field: value}
    with pytest.raises(ManifestError, match=shown):
        Manifest.from_json(document)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"3", b"\xff\xfe"])
def test_what_is_not_a_manifest_is_a_manifest_error(bucket: Bucket, body: bytes) -> None:
    bucket.put(keys.manifest_key("m"), body)
    with pytest.raises(ManifestError, match=r"matrix 'm' in s3://blocks .* delete it"):
        load_manifest(bucket, "m")
    assert delete_matrix(bucket, "m") == 1


def test_saved_once_replaced_only_knowingly(bucket: Bucket) -> None:
    first, second = manifest(), manifest(source="b.npy")
    assert save_manifest(bucket, first)
    assert not save_manifest(bucket, second)
    assert load_manifest(bucket, "m") == first
    info = bucket.head(keys.manifest_key("m"))
    assert info is not None
    assert save_manifest(bucket, second, replaces=info.etag)
    assert not save_manifest(bucket, first, replaces=info.etag)
    assert load_manifest(bucket, "m") == second


def test_a_matrix_that_is_not_there(bucket: Bucket) -> None:
    with pytest.raises(MatrixMissing, match="'m'"):
        load_manifest(bucket, "m")
    with pytest.raises(MatrixMissing, match="'m'"):
        delete_matrix(bucket, "m")
    with pytest.raises(NameRefused):
        load_manifest(bucket, "../m")
    with pytest.raises(NameRefused):
        delete_matrix(bucket, "")


def test_a_manifest_under_another_name_is_refused(bucket: Bucket) -> None:
    bucket.put(keys.manifest_key("other"), manifest("m").to_json())
    with pytest.raises(ManifestError, match="'other'"):
        load_manifest(bucket, "other")


def test_only_finished_matrices_are_listed(bucket: Bucket) -> None:
    for name in ("b", "a"):
        save_manifest(bucket, manifest(name))
    bucket.put(keys.tile_key("unfinished", "0123456789abcdef", 0, 0), b"")
    assert [m.name for m in list_matrices(bucket)] == ["a", "b"]


def test_deletion_takes_the_manifest_first_and_then_everything(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_manifest(bucket, manifest())
    save_manifest(bucket, manifest("m2"))
    for worker in range(4):
        bucket.put(keys.tile_key("m", "0123456789abcdef", worker, 0), b"")
    deleted: list[str] = []
    delete = bucket.client.delete_objects

    def recording(**request: Any) -> Any:
        deleted.extend(item["Key"] for item in request["Delete"]["Objects"])
        return delete(**request)

    monkeypatch.setattr(bucket.client, "delete_objects", recording)
    assert delete_matrix(bucket, "m") == 5
    assert deleted[0] == keys.manifest_key("m")
    assert [info.key for info in bucket.list("")] == [keys.manifest_key("m2")]


def test_what_an_unfinished_encoding_left_can_be_deleted(bucket: Bucket) -> None:
    bucket.put(keys.tile_key("m", "0123456789abcdef", 0, 0), b"")
    assert delete_matrix(bucket, "m") == 1
    assert list(bucket.list("")) == []
