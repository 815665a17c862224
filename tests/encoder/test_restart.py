"""An encoding may be killed, repeated, raced or replaced: there is a whole matrix, or none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blockstore import keys
from blockstore.bucket import Bucket
from blockstore.errors import MatrixMissing, StoreError
from blockstore.manifest import delete_matrix, list_matrices, load_manifest, save_manifest
from encoder import NameTaken, encode
from polarcodes import make_code
from tests.encoder.decoding import coded_blocks, oracle

CODE = make_code("polar", workers=8, data_blocks=5)
RNG = np.random.default_rng(0)
A = RNG.integers(0, 256, (23, 9)).astype("u1")
B = RNG.integers(0, 256, (23, 9)).astype("u1")


class Watching:
    """The client; records what is put, and calls `before` with every key that is about to be."""

    def __init__(self, client: Any, before: Callable[[str, int], None] = lambda *_: None) -> None:
        self._client = client
        self._before = before
        self.puts: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def put_object(self, **request: Any) -> Any:
        self._before(request["Key"], len(self.puts))
        answer = self._client.put_object(**request)
        self.puts.append(request["Key"])
        return answer


class Killed(BaseException):
    """Stands for SIGKILL between two uploads: nothing may catch it."""


def watched(bucket: Bucket, before: Callable[[str, int], None] = lambda *_: None) -> Bucket:
    return Bucket(Watching(bucket.client, before), bucket.name, pause=0.0)


def stored_keys(bucket: Bucket) -> set[str]:
    return {info.key for info in bucket.list("")}


def is_right(bucket: Bucket, matrix: Any) -> bool:
    manifest = load_manifest(bucket, "m")
    return bool((coded_blocks(bucket, manifest).astype(object) == oracle(matrix, manifest)).all())


@pytest.mark.parametrize("survivors", [0, 1, 5, 8])
def test_after_a_kill_only_what_is_missing_is_uploaded(bucket: Bucket, survivors: int) -> None:
    def kill(key: str, done: int) -> None:
        if done == survivors:
            raise Killed

    with pytest.raises(Killed):
        encode(A, watched(bucket, kill), "m", CODE, threads=1)
    left = stored_keys(bucket)
    assert len(left) == survivors and keys.manifest_key("m") not in left
    assert list_matrices(bucket) == []
    second = watched(bucket)
    encode(A, second, "m", CODE)
    assert set(second.client.puts) == stored_keys(bucket) - left
    assert second.client.puts[-1] == keys.manifest_key("m")
    assert is_right(bucket, A)


def test_a_tile_of_the_wrong_size_is_written_again(bucket: Bucket) -> None:
    manifest = encode(A, bucket, "m", CODE)
    key = keys.tile_key("m", manifest.encoding, 3, 0)
    bucket.put(key, bucket.get(key)[:-1])
    again = watched(bucket)
    assert encode(A, again, "m", CODE) == manifest
    assert again.client.puts == [key]
    assert is_right(bucket, A)


def test_tiles_of_another_encoding_are_not_reused_and_go_when_the_matrix_is_there(
    bucket: Bucket,
) -> None:
    def kill(key: str, done: int) -> None:
        if done == 5:
            raise Killed

    with pytest.raises(Killed):
        encode(B, watched(bucket, kill), "m", CODE, threads=1)
    second = watched(bucket)
    encode(A, second, "m", CODE)
    assert len(second.client.puts) == 9
    assert stored_keys(bucket) == set(second.client.puts)
    assert is_right(bucket, A)


def test_the_same_content_and_code_again_writes_nothing(bucket: Bucket, tmp_path: Path) -> None:
    first = encode(A, bucket, "m", CODE)
    np.save(tmp_path / "a.npy", A)
    for source, options in (
        (A, {}),
        (tmp_path / "a.npy", {}),
        (A, {"replace": True}),
        (A, {"memory": 200 << 20}),
        (A, {"spool": False}),
    ):
        again = watched(bucket)
        assert encode(source, again, "m", CODE, **options) == first  # type: ignore[arg-type]
        assert again.client.puts == []


@pytest.mark.parametrize(
    ("source", "code", "shown"),
    [
        (B, CODE, "other content"),
        (A[:-1], CODE, r"shape \(23, 9\)"),
        (A.astype("i2"), CODE, "other content"),
        (A, make_code("polar", workers=8, data_blocks=4), "another code"),
        (A, make_code("polar", workers=8, data_blocks=5, seed=1), "another code"),
    ],
)
def test_a_name_that_is_taken_is_refused_and_replaced_when_asked(
    bucket: Bucket, source: Any, code: Any, shown: str
) -> None:
    first = encode(A, bucket, "m", CODE)
    before = stored_keys(bucket)
    with pytest.raises(NameTaken, match=f"'m'.*{shown}.*replace=True"):
        encode(source, bucket, "m", code)
    assert stored_keys(bucket) == before and load_manifest(bucket, "m") == first
    second = encode(source, bucket, "m", code, replace=True)
    assert second.encoding != first.encoding
    assert is_right(bucket, source)
    assert not any(first.encoding in key for key in stored_keys(bucket))


def test_the_old_matrix_is_whole_until_the_new_one_is(bucket: Bucket) -> None:
    encode(A, bucket, "m", CODE)

    def look(key: str, done: int) -> None:
        assert is_right(bucket, A)

    replacing = watched(bucket, look)
    encode(B, replacing, "m", CODE, replace=True, threads=1)
    assert replacing.client.puts[-1] == keys.manifest_key("m")
    assert is_right(bucket, B)


def test_a_replacement_that_was_killed_leaves_the_old_matrix(bucket: Bucket) -> None:
    first = encode(A, bucket, "m", CODE)

    def kill(key: str, done: int) -> None:
        if key == keys.manifest_key("m"):
            raise Killed

    with pytest.raises(Killed):
        encode(B, watched(bucket, kill), "m", CODE, replace=True)
    assert load_manifest(bucket, "m") == first and is_right(bucket, A)
    again = watched(bucket)
    encode(B, again, "m", CODE, replace=True)
    assert again.client.puts == [keys.manifest_key("m")]
    assert is_right(bucket, B)


@pytest.mark.parametrize("replace", [False, True])
def test_of_two_encodings_of_a_name_the_first_to_finish_wins(bucket: Bucket, replace: bool) -> None:
    if replace:
        encode(A[::-1], bucket, "m", CODE)

    def race(key: str, done: int) -> None:
        if key == keys.manifest_key("m"):
            encode(A, bucket, "m", CODE, replace=replace)

    with pytest.raises(NameTaken, match="meanwhile"):
        encode(B, watched(bucket, race), "m", CODE, replace=replace)
    assert is_right(bucket, A)
    assert len(stored_keys(bucket)) == 9


def test_two_encodings_of_the_same_matrix_agree(bucket: Bucket) -> None:
    def race(key: str, done: int) -> None:
        if key == keys.manifest_key("m"):
            encode(A, bucket, "m", CODE)

    assert encode(A, watched(bucket, race), "m", CODE) == load_manifest(bucket, "m")
    assert is_right(bucket, A)


def test_a_matrix_deleted_while_it_is_replaced_is_not_half_there(bucket: Bucket) -> None:
    encode(A, bucket, "m", CODE)

    def race(key: str, done: int) -> None:
        if key == keys.manifest_key("m"):
            delete_matrix(bucket, "m")

    with pytest.raises(NameTaken, match="deleted"):
        encode(B, watched(bucket, race), "m", CODE, replace=True)
    with pytest.raises(MatrixMissing):
        load_manifest(bucket, "m")


def test_tiles_that_vanish_before_the_manifest_are_noticed(bucket: Bucket) -> None:
    def delete_first(key: str, done: int) -> None:
        if done == 7:
            bucket.delete_prefix("matrices/m/")

    with pytest.raises(StoreError, match="vanished"):
        encode(A, watched(bucket, delete_first), "m", CODE, threads=1)
    assert list_matrices(bucket) == []


def test_a_put_that_fails_stops_the_encoding(bucket: Bucket) -> None:
    def fail(key: str, done: int) -> None:
        if key.endswith("00003/0000.npy"):
            raise RuntimeError("the upload of worker 3 fails")

    with pytest.raises(RuntimeError, match="worker 3"):
        encode(A, watched(bucket, fail), "m", CODE)
    assert list_matrices(bucket) == []


def test_more_tiles_than_a_listing_page(bucket: Bucket) -> None:
    code = make_code("polar", workers=1024, data_blocks=1000)
    matrix = RNG.integers(0, 256, (1000, 3)).astype("u1")
    first = encode(matrix, bucket, "m", code)
    again = watched(bucket)
    assert encode(matrix, again, "m", code) == first
    assert again.client.puts == []
    assert is_right(bucket, matrix)


def test_the_manifest_survives_a_put_that_was_sent_twice(bucket: Bucket) -> None:
    def twice(key: str, done: int) -> None:
        if key == keys.manifest_key("m"):
            body = sent[-1]
            bucket.put(key, body)

    sent: list[bytes] = []
    import encoder.pipeline as pipeline

    def saving(target: Bucket, manifest: Any, **options: Any) -> bool:
        sent.append(manifest.to_json())
        return save_manifest(target, manifest, **options)

    original = pipeline.save_manifest
    pipeline.save_manifest = saving
    try:
        manifest = encode(A, watched(bucket, twice), "m", CODE)
    finally:
        pipeline.save_manifest = original
    assert load_manifest(bucket, "m") == manifest
