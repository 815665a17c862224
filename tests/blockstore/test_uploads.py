"""Objects in parts and peeks, through real botocore requests on moto."""

from __future__ import annotations

import pytest
from botocore.exceptions import ClientError

from blockstore.bucket import Bucket
from blockstore.errors import CorruptObject, ObjectMissing, UploadMissing
from blockstore.uploads import LEAST_PART

KEY = "runs/x/result.npy"
FIRST, LAST = b"a" * LEAST_PART, b"end"


def test_parts_in_any_order_become_an_object(bucket: Bucket) -> None:
    upload = bucket.start_upload(KEY)
    bucket.put_part(KEY, upload, 2, LAST)
    bucket.put_part(KEY, upload, 1, b"b" * LEAST_PART)
    bucket.put_part(KEY, upload, 1, FIRST)  # done twice: the last one counts
    assert bucket.head(KEY) is None
    bucket.finish_upload(KEY, upload, {1: len(FIRST), 2: len(LAST)})
    assert bucket.get(KEY) == FIRST + LAST


@pytest.mark.parametrize("sizes", [{1: 3, 2: 3}, {1: 4}, {2: 3}, {}])
def test_a_part_that_is_missing_or_differs_is_refused(
    bucket: Bucket, sizes: dict[int, int]
) -> None:
    upload = bucket.start_upload(KEY)
    bucket.put_part(KEY, upload, 1, LAST)
    with pytest.raises(CorruptObject, match="belong to it"):
        bucket.finish_upload(KEY, upload, sizes)
    assert bucket.head(KEY) is None


def test_an_upload_that_has_ended_is_named(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    upload = bucket.start_upload(KEY)
    bucket.put_part(KEY, upload, 1, LAST)
    bucket.abort_upload(KEY, upload)
    assert bucket.head(KEY) is None

    def gone(**_: object) -> None:  # S3's answer: moto fails in other ways
        raise ClientError({"Error": {"Code": "NoSuchUpload"}}, "any")

    for method in ("upload_part", "list_parts", "abort_multipart_upload"):
        monkeypatch.setattr(bucket.client, method, gone)
    bucket.abort_upload(KEY, upload)
    with pytest.raises(UploadMissing):
        bucket.put_part(KEY, upload, 1, LAST)
    with pytest.raises(UploadMissing):
        bucket.finish_upload(KEY, upload, {1: 3})


def test_a_peek_says_what_the_whole_object_is(bucket: Bucket) -> None:
    bucket.put("k", b"abcdef", metadata={"finite": "1"})
    info = bucket.head("k")
    for count, head in ((3, b"abc"), (6, b"abcdef"), (100, b"abcdef")):
        found = bucket.peek("k", count)
        assert (found.head, found.size, found.metadata) == (head, 6, {"finite": "1"})
        assert info is not None and found.etag == info.etag
    with pytest.raises(ObjectMissing):
        bucket.peek("none", 3)
