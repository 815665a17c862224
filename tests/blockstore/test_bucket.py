"""Contract of the store, on moto."""

from __future__ import annotations

import pytest

from blockstore.bucket import Bucket
from blockstore.errors import (
    BucketMissing,
    CorruptObject,
    ObjectChanged,
    ObjectMissing,
)


def test_what_is_put_is_got_with_its_metadata(bucket: Bucket) -> None:
    assert bucket.put("k", b"abcdef", metadata={"x-digest": "d"}, content_type="text/plain")
    assert bucket.get("k") == b"abcdef"
    assert bucket.get_object("k") == (b"abcdef", {"x-digest": "d"})
    info = bucket.head("k")
    assert info is not None and (info.key, info.size) == ("k", 6)


def test_ranges_include_both_ends(bucket: Bucket) -> None:
    bucket.put("k", b"abcdef")
    assert bucket.get("k", first=1, last=3) == b"bcd"
    assert bucket.get("k", first=4) == b"ef"
    assert bucket.get("k", last=1) == b"ab"
    with pytest.raises(ValueError, match="last"):
        bucket.get("k", first=3, last=2)


def test_a_range_beyond_the_end_is_a_corrupt_object(bucket: Bucket) -> None:
    bucket.put("k", b"abcdef")
    with pytest.raises(CorruptObject, match="shorter"):
        bucket.get("k", first=4, last=9)
    with pytest.raises(CorruptObject, match="shorter"):
        bucket.get("k", first=10, last=12)


def test_missing_objects_and_missing_buckets_are_told_apart(bucket: Bucket) -> None:
    with pytest.raises(ObjectMissing, match="s3://blocks/k"):
        bucket.get("k")
    assert bucket.head("k") is None
    bucket.check()
    gone = Bucket(bucket.client, "no-such-bucket")
    for call in (
        lambda: gone.get("k"),
        lambda: gone.put("k", b""),
        lambda: list(gone.list("")),
        lambda: gone.delete(["k"]),
        gone.check,
    ):
        with pytest.raises(BucketMissing, match="no-such-bucket"):
            call()


def test_the_first_conditional_put_wins(bucket: Bucket) -> None:
    assert bucket.put("k", b"first", if_none_match=True)
    assert not bucket.put("k", b"second", if_none_match=True)
    assert bucket.get("k") == b"first"


def test_if_match_writes_over_that_version_only(bucket: Bucket) -> None:
    bucket.put("k", b"one")
    info = bucket.head("k")
    assert info is not None
    assert bucket.put("k", b"two", if_match=info.etag)
    assert not bucket.put("k", b"three", if_match=info.etag)
    assert bucket.get("k") == b"two"
    assert not bucket.put("gone", b"x", if_match=info.etag)


def test_reads_can_insist_on_a_version(bucket: Bucket) -> None:
    bucket.put("k", b"one")
    info = bucket.head("k")
    assert info is not None
    assert bucket.get("k", if_match=info.etag) == b"one"
    bucket.put("k", b"two")
    with pytest.raises(ObjectChanged):
        bucket.get("k", if_match=info.etag)


@pytest.mark.parametrize("count", [0, 1, 999, 1000, 1001, 2003])
def test_listings_are_complete_whatever_the_page(bucket: Bucket, count: int) -> None:
    names = [f"p/{i:05d}" for i in range(count)]
    backend_put(bucket, names)
    assert [info.key for info in bucket.list("p/")] == names
    if count > 3:
        assert [info.key for info in bucket.list("p/", start_after=names[2])] == names[3:]
    assert bucket.delete_prefix("p/") == count
    assert list(bucket.list("p/")) == []


def backend_put(bucket: Bucket, names: list[str]) -> None:
    """Raw set, past the code under test and past HTTP."""
    from moto.core import DEFAULT_ACCOUNT_ID
    from moto.s3.models import s3_backends

    backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
    for name in names:
        backend.put_object(bucket.name, name, b"x")


def test_folder_markers_are_not_objects(bucket: Bucket) -> None:
    bucket.client.put_object(Bucket=bucket.name, Key="p/", Body=b"")
    bucket.client.put_object(Bucket=bucket.name, Key="p/q/", Body=b"")
    bucket.put("p/real", b"")
    assert [info.key for info in bucket.list("p/")] == ["p/real"]
    assert bucket.delete_prefix("p/") == 3
    assert bucket.client.list_objects_v2(Bucket=bucket.name).get("KeyCount") == 0


def test_folders_are_the_names_below_a_prefix(bucket: Bucket) -> None:
    for key in ("m/a/1", "m/a/2", "m/b/1", "m/loose", "n/c/1"):
        bucket.put(key, b"")
    assert list(bucket.folders("m/")) == ["a", "b"]
    assert list(bucket.folders("none/")) == []


def test_deleting_what_is_not_there_is_no_error(bucket: Bucket) -> None:
    assert bucket.delete(["k", "l"]) == 2
    assert bucket.delete([]) == 0
    with pytest.raises(ValueError, match="slash"):
        bucket.delete_prefix("runs")


def test_bytes_are_read_into_memory_of_the_caller(bucket: Bucket) -> None:
    bucket.put("k", bytes(range(250)) * 4000)
    room = bytearray(700_001)
    bucket.read_into(memoryview(room), "k", 1000)
    assert room == (bytes(range(250)) * 4000)[1000 : 1000 + len(room)]
    with pytest.raises(CorruptObject, match="shorter"):
        bucket.read_into(memoryview(bytearray(1001)), "k", 999_000)
    with pytest.raises(ObjectMissing):
        bucket.read_into(memoryview(room), "none", 0)
    with pytest.raises(ObjectChanged):
        bucket.read_into(memoryview(room), "k", 0, if_match='"other"')


def test_an_object_that_has_not_changed_is_not_sent_again(bucket):
    bucket.put("latest", b"one")
    body, etag = bucket.get_changed("latest", None)
    assert body == b"one"
    assert bucket.get_changed("latest", etag) is None
    bucket.put("latest", b"two")
    again = bucket.get_changed("latest", etag)
    assert again is not None and again[0] == b"two" and again[1] != etag
    with pytest.raises(ObjectMissing):
        bucket.get_changed("nothing", etag)
