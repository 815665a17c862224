"""What moto never does: short bodies, conflicts and refusals, from a stubbed client."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import (
    ClientError,
    EndpointConnectionError,
    FlexibleChecksumError,
    NoCredentialsError,
    ReadTimeoutError,
)
from botocore.response import StreamingBody

from blockstore.bucket import BODY_ATTEMPTS, Bucket
from blockstore.errors import (
    AccessDenied,
    BucketMissing,
    CorruptObject,
    CredentialsMissing,
    StoreError,
    StoreUnavailable,
)


class Stub:
    """A client whose operations give the answers listed, one a call, the last one for ever."""

    def __init__(self, **answers: list[Any]) -> None:
        self.answers = answers
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        def call(**request: Any) -> Any:
            answers = self.answers[operation]
            self.calls.append((operation, request))
            answer = answers[0] if len(answers) == 1 else answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer() if callable(answer) else answer

        return call


def refusal(status: int, code: str, operation: str = "GetObject") -> ClientError:
    return ClientError(
        {
            "Error": {"Code": code, "Message": "message from S3"},
            "ResponseMetadata": {"HTTPStatusCode": status},
        },
        operation,
    )


def body(data: bytes, length: int | None = None) -> Callable[[], dict[str, Any]]:
    announced = len(data) if length is None else length
    return lambda: {
        "Body": StreamingBody(io.BytesIO(data), announced),
        "ContentLength": announced,
        "Metadata": {},
    }


def stubbed(**answers: list[Any]) -> Bucket:
    return Bucket(Stub(**answers), "blocks", pause=0.0)


def test_a_body_cut_short_is_asked_for_again() -> None:
    bucket = stubbed(get_object=[body(b"abc", 6), body(b"abcdef")])
    assert bucket.get("k") == b"abcdef"
    assert len(bucket.client.calls) == 2


def test_a_body_always_cut_short_is_a_corrupt_object_and_never_an_answer() -> None:
    bucket = stubbed(get_object=[body(b"abc", 6)])
    with pytest.raises(CorruptObject, match=r"s3://blocks/k.*cut short"):
        bucket.get("k")
    assert len(bucket.client.calls) == BODY_ATTEMPTS


def test_names_of_metadata_are_in_lower_case_however_they_were_sent() -> None:
    def answer() -> dict[str, Any]:
        return body(b"abc")() | {"Metadata": {"X-Digest": "D"}, "ETag": '"e"'}

    assert stubbed(get_object=[answer]).get_object("k") == (b"abc", {"x-digest": "D"})
    assert stubbed(get_object=[answer]).peek("k", 3).metadata == {"x-digest": "D"}
    assert stubbed(head_object=[answer]).metadata("k") == {"x-digest": "D"}


def test_a_stream_that_does_not_check_its_length_is_checked() -> None:
    short = {"Body": StreamingBody(io.BytesIO(b"abc"), None), "ContentLength": 6}
    bucket = stubbed(get_object=[short, body(b"abcdef")])
    assert bucket.get("k") == b"abcdef"


class WrongChecksum(io.BytesIO):
    def read(self, *_: Any) -> bytes:
        raise FlexibleChecksumError(error_msg="Expected checksum x did not match y")


def test_a_wrong_checksum_is_asked_for_again_then_a_corrupt_object() -> None:
    def damaged() -> dict[str, Any]:
        return {"Body": WrongChecksum(), "ContentLength": 6}

    assert stubbed(get_object=[damaged, body(b"abcdef")]).get("k") == b"abcdef"
    with pytest.raises(CorruptObject, match="checksum"):
        stubbed(get_object=[damaged]).get("k")


class Silent(io.BytesIO):
    def read(self, *_: Any) -> bytes:
        raise ReadTimeoutError(endpoint_url="http://localhost:1")


def test_a_body_that_never_comes_is_an_unavailable_store_not_a_corrupt_object() -> None:
    with pytest.raises(StoreUnavailable, match="s3://blocks/k"):
        stubbed(get_object=[lambda: {"Body": Silent(), "ContentLength": 6}]).get("k")


def test_a_conditional_put_that_meets_another_is_repeated_until_decided() -> None:
    conflict = refusal(409, "ConditionalRequestConflict", "PutObject")
    lost = refusal(412, "PreconditionFailed", "PutObject")
    etag = stubbed(put_object=[conflict, {"ETag": '"e"'}]).put("k", b"", if_none_match=True)
    assert etag == '"e"'
    assert not stubbed(put_object=[conflict, lost]).put("k", b"", if_none_match=True)
    with pytest.raises(StoreUnavailable, match="other writers"):
        stubbed(put_object=[conflict]).put("k", b"", if_none_match=True)


def test_an_unconditional_put_never_reports_a_lost_condition() -> None:
    with pytest.raises(StoreError):
        stubbed(put_object=[refusal(412, "PreconditionFailed")]).put("k", b"")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (refusal(403, "AccessDenied"), AccessDenied),
        (refusal(403, "AllAccessDisabled"), AccessDenied),
        (refusal(403, "InvalidAccessKeyId"), CredentialsMissing),
        (refusal(403, "SignatureDoesNotMatch"), CredentialsMissing),
        (refusal(400, "ExpiredToken"), CredentialsMissing),
        (NoCredentialsError(), CredentialsMissing),
        (refusal(404, "NoSuchBucket"), BucketMissing),
        (refusal(503, "SlowDown"), StoreUnavailable),
        (refusal(500, "InternalError"), StoreUnavailable),
        (refusal(429, "TooManyRequests"), StoreUnavailable),
        (EndpointConnectionError(endpoint_url="http://localhost:1"), StoreUnavailable),
        (refusal(301, "PermanentRedirect"), StoreError),
        (refusal(418, "Teapot"), StoreError),
    ],
)
def test_every_operation_gives_the_typed_error(answer: Exception, error: type[StoreError]) -> None:
    operations: dict[str, Callable[[Bucket], Any]] = {
        "get_object": lambda bucket: bucket.get("k"),
        "put_object": lambda bucket: bucket.put("k", b"", if_none_match=True),
        "list_objects_v2": lambda bucket: list(bucket.list("p")),
        "delete_objects": lambda bucket: bucket.delete(["k"]),
    }
    for operation, call in operations.items():
        with pytest.raises(error) as shown:
            call(stubbed(**{operation: [answer]}))
        assert type(shown.value) is error
        assert "blocks" in str(shown.value)


def test_a_denied_head_is_not_a_missing_object() -> None:
    with pytest.raises(AccessDenied):
        stubbed(head_object=[refusal(403, "403", "HeadObject")]).head("k")
    assert stubbed(head_object=[refusal(404, "404", "HeadObject")]).head("k") is None


def test_check_tells_denied_from_missing() -> None:
    with pytest.raises(AccessDenied):
        stubbed(head_bucket=[refusal(403, "403", "HeadBucket")]).check()
    with pytest.raises(BucketMissing):
        stubbed(head_bucket=[refusal(404, "404", "HeadBucket")]).check()


def test_a_deletion_refused_inside_a_200_answer_is_shown() -> None:
    answer = {"Errors": [{"Key": "k", "Code": "AccessDenied", "Message": "no"}]}
    with pytest.raises(AccessDenied, match="k"):
        stubbed(delete_objects=[answer]).delete(["k"])


def test_deletions_go_in_thousands() -> None:
    bucket = stubbed(delete_objects=[{}])
    assert bucket.delete(str(i) for i in range(2001)) == 2001
    sizes = [len(request["Delete"]["Objects"]) for _, request in bucket.client.calls]
    assert sizes == [1000, 1000, 1]


def test_no_credentials_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from blockstore.connect import s3_client

    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    with pytest.raises(CredentialsMissing, match="AWS_PROFILE") as shown:
        Bucket(s3_client(), "blocks").check()
    assert "\n" not in str(shown.value)


def test_a_profile_that_does_not_exist_is_missing_credentials(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from blockstore.connect import s3_client

    monkeypatch.setenv("AWS_PROFILE", "no-such-profile")
    with pytest.raises(CredentialsMissing, match="no-such-profile"):
        s3_client()


def test_a_body_cut_short_is_read_into_memory_again() -> None:
    room = bytearray(6)
    bucket = stubbed(get_object=[body(b"xyz", 6), body(b"abcdef")])
    bucket.read_into(memoryview(room), "k", 0)
    assert room == b"abcdef"
    with pytest.raises(CorruptObject, match="cut short"):
        stubbed(get_object=[body(b"abc", 6)]).read_into(memoryview(room), "k", 0)

    def longer() -> dict[str, Any]:
        return {"Body": StreamingBody(io.BytesIO(b"abcdefgh"), None), "ContentLength": 6}

    with pytest.raises(CorruptObject, match="announced"):
        stubbed(get_object=[longer]).read_into(memoryview(room), "k", 0)


def test_an_endpoint_that_is_no_url_is_named(monkeypatch):
    from blockstore.connect import s3_client

    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "nonsense")
    with pytest.raises(StoreUnavailable, match="AWS_ENDPOINT_URL_S3 must be a URL"):
        s3_client()
