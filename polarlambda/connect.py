"""Clients for the bucket and the functions that the settings name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from polarlambda.settings import Settings, load_settings

if TYPE_CHECKING:
    from blockstore.bucket import Bucket
    from coordinator.prices import Prices

# A function may run 15 minutes: the answer to a synchronous invocation is awaited a little longer.
ANSWER_SECONDS = 930.0


@dataclass(frozen=True)
class Place:
    """Where to find things: ``stack``'s outputs, single names, or the environment variables."""

    stack: str | None = None
    bucket: str | None = None
    worker: str | None = None
    coordinator: str | None = None
    encode: str | None = None

    def settings(self) -> Settings:
        """The names, see `polarlambda.settings.load_settings`."""
        return load_settings(
            stack=self.stack,
            bucket=self.bucket,
            worker=self.worker,
            coordinator=self.coordinator,
            encode=self.encode,
        )

    def open_bucket(self) -> Bucket:
        """The bucket, checked to be there. Raises `SettingMissing`, `StoreError`."""
        return open_bucket(self.settings())


def open_bucket(settings: Settings, *, pool: int = 32) -> Bucket:
    """The bucket of the settings, checked to be there and accessible (one HEAD request).

    ``pool`` is the number of threads that may use it at once. Raises `SettingMissing`, or the
    store's `BucketMissing`, `AccessDenied`, `CredentialsMissing`, `StoreUnavailable`.
    """
    from blockstore.bucket import Bucket
    from blockstore.connect import s3_client

    name = settings.need("bucket")
    bucket = Bucket(s3_client(pool=pool), name)
    bucket.check()
    return bucket


def function_client() -> Any:
    """A Lambda client that waits for the longest function and never sends a request twice."""
    from coordinator.invoker import lambda_client

    return lambda_client(read_timeout=ANSWER_SECONDS)


@dataclass(frozen=True)
class WorkerLimits:
    """Memory (MB), time limit (seconds), processor and region of the worker function;
    `reserved`: environments that are reserved for it, None if it shares the account's."""

    memory_mb: int
    timeout: float
    architecture: str = "x86_64"
    region: str = ""
    reserved: int | None = None

    @property
    def prices(self) -> Prices:
        """Prices of the region, or of us-east-1 where the table lacks it: the bill names which."""
        from coordinator.prices import PricesError, load_prices

        try:
            return load_prices(self.region, self.architecture)
        except PricesError:
            return load_prices(architecture=self.architecture)


# What template.yaml deploys unless told otherwise.
DEPLOYED = WorkerLimits(memory_mb=1_769, timeout=300.0)


def worker_limits(client: Any, function: str) -> WorkerLimits:
    """The limits of the deployed worker; those of the template if the caller may not ask.

    Raises the errors of botocore for anything but a refused permission.
    """
    from botocore.exceptions import ClientError

    try:
        found = client.get_function_configuration(FunctionName=function)
    except ClientError as error:
        if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == 403:
            return DEPLOYED
        raise
    return WorkerLimits(
        memory_mb=int(found["MemorySize"]),
        timeout=float(found["Timeout"]),
        architecture=found.get("Architectures", ["x86_64"])[0],
        region=client.meta.region_name,
        reserved=_reserved(client, function),
    )


def _reserved(client: Any, function: str) -> int | None:
    """The function's reserved concurrency; None without one, or if the caller may not ask."""
    from botocore.exceptions import ClientError

    try:
        found = client.get_function_concurrency(FunctionName=function)
    except ClientError:
        return None
    reserved = found.get("ReservedConcurrentExecutions")
    return int(reserved) if reserved is not None else None


def account_concurrency(client: Any) -> int:
    """Environments that the account may run at once; AWS's default if the caller may not ask."""
    from botocore.exceptions import ClientError

    from coordinator.platform import Platform

    try:
        limits = client.get_account_settings()["AccountLimit"]
    except ClientError:
        return Platform().concurrency
    return int(limits["ConcurrentExecutions"])
