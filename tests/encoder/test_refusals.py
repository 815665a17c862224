"""Bad input is refused with the rule and the fix, and nothing is written."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from botocore.exceptions import ClientError

from blockstore.bucket import Bucket
from blockstore.errors import (
    AccessDenied,
    BucketMissing,
    CredentialsMissing,
    NameRefused,
    ObjectMissing,
)
from blockstore.tiling import least_memory
from encoder import EncodeError, MemoryTooSmall, SourceRefused, SpoolTooSmall, encode
from polarcodes import CodeError, make_code

CODE = make_code("polar", workers=4, data_blocks=3)
GOOD = np.arange(20, dtype="f4").reshape(5, 4)


@pytest.fixture(autouse=True)
def nothing_is_written(bucket: Bucket) -> Iterator[None]:
    before = {info.key: info.etag for info in bucket.list("")}
    yield
    after = {info.key: info.etag for info in bucket.list("") if not info.key.startswith("inputs/")}
    assert before == after == {}


ARRAYS = [
    (np.array(3.0), "two-dimensional"),
    (np.zeros(5), r"two-dimensional.*\(5,\).*reshape"),
    (np.zeros((2, 3, 4)), r"two-dimensional.*\(2, 3, 4\)"),
    (np.zeros((0, 4)), "empty"),
    (np.zeros((4, 0)), "empty"),
    (np.array([[object()]]), "pickle"),
    (np.array([["a", "b"]]), "text"),
    (np.array([[b"a", b"b"]]), "text"),
    (np.zeros((2, 2), [("x", "f4")]), "structured"),
    (np.zeros((2, 2), "M8[D]"), "dates"),
    (np.array([[timedelta(1)]], "m8[s]"), "time spans"),
    (np.zeros((2, 2), "c8"), r"complex.*\.real"),
    (np.zeros((2, 2), "c16"), r"complex.*\.real"),
]


@pytest.mark.parametrize(("array", "rule"), ARRAYS)
def test_arrays_that_are_not_a_real_matrix(bucket: Bucket, array: Any, rule: str) -> None:
    with pytest.raises(SourceRefused, match=rule):
        encode(array, bucket, "m", CODE)


@pytest.mark.parametrize(("array", "rule"), ARRAYS)
def test_files_that_are_not_a_real_matrix(
    bucket: Bucket, tmp_path: Path, array: Any, rule: str
) -> None:
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    with pytest.raises(SourceRefused, match=rule) as refused:
        encode(tmp_path / "a.npy", bucket, "m", CODE)
    assert "a.npy" in str(refused.value)
    bucket.put("inputs/a.npy", (tmp_path / "a.npy").read_bytes())
    with pytest.raises(SourceRefused, match=rule):
        encode("s3://blocks/inputs/a.npy", bucket, "m", CODE)


class Explosive:
    """Writes a file when it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return open, (self.path, "w")


def test_no_pickle_is_ever_loaded(bucket: Bucket, tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    explosive = np.array([[Explosive(str(proof))]])
    np.save(tmp_path / "object.npy", explosive, allow_pickle=True)
    (tmp_path / "plain.npy").write_bytes(pickle.dumps(explosive))
    np.savez(tmp_path / "archive.npz", a=explosive)
    for name, rule in (("object.npy", "pickle"), ("plain.npy", "pickle"), ("archive.npz", "npz")):
        with pytest.raises(SourceRefused, match=rule):
            encode(tmp_path / name, bucket, "m", CODE)
    assert not proof.exists()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["f2", "f4", ">f8"])
def test_the_first_row_that_is_not_finite_is_named(
    bucket: Bucket, tmp_path: Path, value: float, order: Any, dtype: str
) -> None:
    matrix = np.zeros((3000, 7), dtype, order=order)
    matrix[2500, 0] = matrix[1717, 5] = matrix[1717, 6] = matrix[2999, 1] = value
    np.save(tmp_path / "a.npy", matrix)
    for source in (matrix, tmp_path / "a.npy"):
        with pytest.raises(SourceRefused, match=r"row 1717 has .*(nan|inf) in column 5"):
            encode(source, bucket, "m", CODE)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("piece", [16, 100, 1000])
def test_the_first_row_is_named_whatever_the_pieces_that_are_read(order: Any, piece: int) -> None:
    from encoder.scan import scan_source
    from encoder.sources import open_source

    matrix = np.zeros((40, 9), "f8", order=order)
    matrix[30, 1] = matrix[12, 7] = matrix[12, 3] = np.nan
    with pytest.raises(SourceRefused, match="row 12 has nan in column 3"):
        scan_source(open_source(matrix), piece, lambda _: None)


def test_truncated_files_and_headers_that_claim_more(bucket: Bucket, tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    np.save(path, GOOD)
    whole = path.read_bytes()
    from blockstore.arrays import npy_header

    cases = [
        (whole[:-1], r"truncated.*\(5, 4\).*80 bytes"),
        (whole[:128], "truncated"),
        (whole[:100], "truncated"),
        (whole[:5], "truncated"),
        (b"", "truncated"),
        (npy_header("f8", (2**40, 2**10)) + bytes(800), "truncated"),
        (whole + b"\0", "1 bytes follow"),
        (b"1,2,3\n4,5,6\n", "not an .npy"),
    ]
    for body, rule in cases:
        path.write_bytes(body)
        with pytest.raises(SourceRefused, match=rule):
            encode(path, bucket, "m", CODE)
        bucket.put("inputs/a.npy", body)
        with pytest.raises(SourceRefused, match=rule):
            encode("s3://blocks/inputs/a.npy", bucket, "m", CODE)


def test_sources_that_cannot_be_read_twice_or_at_all(bucket: Bucket, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    os.close(os.open(tmp_path / "pipe", os.O_RDWR))
    for source, rule in (
        (tmp_path / "none.npy", "No such file"),
        (tmp_path, "folder.*--images"),
        ("/dev/null", "regular file"),
        ("s3://blocks", "s3://bucket/key"),
        ("s3:///key", "s3://bucket/key"),
        ([[1.0, 2.0]], "numpy.asarray"),
        (None, "NoneType"),
        (np.ma.masked_array(GOOD, GOOD > 3), "filled"),
    ):
        with pytest.raises(SourceRefused, match=rule):
            encode(source, bucket, "m", CODE)  # type: ignore[arg-type]


def test_an_s3_source_that_is_not_there(bucket: Bucket) -> None:
    with pytest.raises(ObjectMissing, match=r"s3://blocks/inputs/none\.npy"):
        encode("s3://blocks/inputs/none.npy", bucket, "m", CODE)
    with pytest.raises(BucketMissing, match="no-such-bucket"):
        encode("s3://no-such-bucket/a.npy", bucket, "m", CODE)


@pytest.mark.parametrize("name", ["", "a/b", ".", "..", " m", "m.", "m\n", "é"])
def test_names_that_keys_mangle(bucket: Bucket, name: str) -> None:
    with pytest.raises(NameRefused, match="Try"):
        encode(GOOD, bucket, name, CODE)


def test_more_data_blocks_than_workers_and_impossible_codes() -> None:
    for workers, data_blocks in ((4, 5), (5, 6), (0, 0), (4, 0), (1, 1)):
        with pytest.raises(CodeError):
            make_code("polar", workers=workers, data_blocks=data_blocks)


def test_a_bucket_that_is_not_there(bucket: Bucket) -> None:
    with pytest.raises(BucketMissing, match="no-such-bucket"):
        encode(GOOD, Bucket(bucket.client, "no-such-bucket"), "m", CODE)


def test_no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    from blockstore.connect import s3_client

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    with pytest.raises(CredentialsMissing):
        encode(GOOD, Bucket(s3_client(), "blocks"), "m", CODE)


class Denying:
    """The client, but S3 denies one operation."""

    def __init__(self, client: Any, operation: str) -> None:
        self._client = client
        self._operation = operation

    def __getattr__(self, name: str) -> Any:
        if name != self._operation:
            return getattr(self._client, name)

        def deny(**_: Any) -> Any:
            raise ClientError(
                {
                    "Error": {"Code": "AccessDenied", "Message": "no policy allows it"},
                    "ResponseMetadata": {"HTTPStatusCode": 403},
                },
                name,
            )

        return deny


@pytest.mark.parametrize("operation", ["head_bucket", "head_object", "list_objects_v2"])
def test_access_denied_is_shown(bucket: Bucket, operation: str) -> None:
    with pytest.raises(AccessDenied, match="policy"):
        encode(GOOD, Bucket(Denying(bucket.client, operation), "blocks"), "m", CODE)


def test_access_denied_to_write_is_shown_and_leaves_no_matrix(bucket: Bucket) -> None:
    with pytest.raises(AccessDenied, match=r"write s3://blocks/matrices/m/coded"):
        encode(GOOD, Bucket(Denying(bucket.client, "put_object"), "blocks"), "m", CODE)


@pytest.mark.parametrize("memory", [0, 1 << 20, least_memory(4) - 1])
def test_too_little_memory_names_the_number_needed(bucket: Bucket, memory: int) -> None:
    with pytest.raises(MemoryTooSmall, match=f"{least_memory(4):,}"):
        encode(GOOD, bucket, "m", CODE, memory=memory)


def test_a_spool_folder_that_is_not_there(bucket: Bucket, tmp_path: Path) -> None:
    with pytest.raises(SpoolTooSmall, match="existing folder"):
        encode(GOOD, bucket, "m", CODE, spool=tmp_path / "none")


@pytest.mark.parametrize("threads", [0, -1])
def test_no_upload_threads(bucket: Bucket, threads: int) -> None:
    with pytest.raises(EncodeError, match="threads must be at least 1"):
        encode(GOOD, bucket, "m", CODE, threads=threads)


def test_sums_that_no_dtype_holds(bucket: Bucket) -> None:
    with pytest.raises(SourceRefused, match="overflow"):
        encode(np.full((5, 4), 1e308), bucket, "m", CODE)


def test_every_refusal_of_the_encoder_is_a_value_error() -> None:
    assert issubclass(EncodeError, ValueError)
