"""What S3 and the SDK say went wrong -> one of the typed errors, with what to do about it."""

from __future__ import annotations

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    FlexibleChecksumError,
    IncompleteReadError,
    NoCredentialsError,
    ParamValidationError,
    PartialCredentialsError,
    ReadTimeoutError,
    ResponseStreamingError,
    TokenRetrievalError,
)

from blockstore.errors import (
    AccessDenied,
    BucketMissing,
    CorruptObject,
    CredentialsMissing,
    ObjectChanged,
    ObjectMissing,
    ObjectUnchanged,
    StoreError,
    StoreUnavailable,
    UploadMissing,
)

# A GET whose body breaks off or does not match its checksum: worth asking for again.
CUT_SHORT = (IncompleteReadError, ResponseStreamingError, ReadTimeoutError, FlexibleChecksumError)

_NO_CREDENTIALS = (
    NoCredentialsError,
    PartialCredentialsError,
    CredentialRetrievalError,
    TokenRetrievalError,
)
_BAD_CREDENTIALS = {
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "TokenRefreshRequired",
}
_BUSY = {"SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "Throttling"}


def status(exc: ClientError) -> int:
    """HTTP status of an error answer, 0 if it has none."""
    return int(exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def code(exc: ClientError) -> str:
    """S3's name for what went wrong, empty if it gave none (a HEAD has no body)."""
    return str(exc.response.get("Error", {}).get("Code", ""))


def is_condition_failed(exc: ClientError, if_match: str | None) -> bool:
    """True if a conditional write lost: 412, or 404 for If-Match on an object that has gone."""
    gone = if_match is not None and code(exc) == "NoSuchKey"
    return gone or code(exc) == "PreconditionFailed" or status(exc) == 412


def is_conflict(exc: ClientError) -> bool:
    """True if another write to the key was under way: 409, worth trying again."""
    return code(exc) in ("ConditionalRequestConflict", "OperationAborted") or status(exc) == 409


def bucket_missing(bucket: str) -> str:
    """What to say of a bucket that is not there."""
    return (
        f"bucket {bucket!r} does not exist (or not in this region): check the name, "
        "or deploy the stack that makes it"
    )


def translate(
    exc: ClientError | BotoCoreError, doing: str, bucket: str, key: str | None
) -> StoreError:
    """The typed error for what `exc` says happened when `doing` something with `key`."""
    place = f"s3://{bucket}/{key or ''}"
    if isinstance(exc, ClientError):
        return _from_answer(exc, doing, bucket, place)
    if isinstance(exc, _NO_CREDENTIALS):
        return CredentialsMissing(
            f"no AWS credentials to {doing} {place}: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and "
            f"AWS_SECRET_ACCESS_KEY ({exc})"
        )
    if isinstance(exc, ParamValidationError):
        return StoreError(f"{place}: {exc}")
    return StoreUnavailable(f"cannot {doing} {place}: {exc}")


def _from_answer(exc: ClientError, doing: str, bucket: str, place: str) -> StoreError:
    name, number = code(exc), status(exc)
    said = f"S3 answered {number} {name}: {exc.response.get('Error', {}).get('Message', '')}"
    if name == "NoSuchBucket":
        return BucketMissing(bucket_missing(bucket))
    if name in ("NoSuchKey", "NotFound", "404"):
        return ObjectMissing(f"{place} does not exist")
    if name == "NoSuchUpload":
        return UploadMissing(f"{place}: the upload in parts was finished or aborted")
    if name in _BAD_CREDENTIALS:
        return CredentialsMissing(
            f"the AWS credentials are not accepted for {place}: {said}; renew them"
        )
    if number == 403 or name == "AccessDenied":
        return AccessDenied(
            f"not allowed to {doing} {place}: {said}. Check the policy of the caller (without "
            "s3:ListBucket, S3 answers this for missing objects too)"
        )
    if number == 304:
        return ObjectUnchanged(f"{place} has not changed")
    if number == 412 or name == "PreconditionFailed":
        return ObjectChanged(f"{place} was replaced while it was being read")
    if number == 416 or name == "InvalidRange":
        return CorruptObject(f"{place} is shorter than its description says ({said})")
    if name in _BUSY or number >= 500 or number == 429:
        return StoreUnavailable(f"cannot {doing} {place} now: {said}")
    if number in (301, 307, 400) and name in ("PermanentRedirect", "301", "400"):
        return StoreError(
            f"cannot {doing} {place}: {said}; the bucket may be in another region: set "
            "AWS_DEFAULT_REGION"
        )
    return StoreError(f"cannot {doing} {place}: {said}")
