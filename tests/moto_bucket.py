"""A bucket on moto: real botocore requests, answered in the process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from moto import mock_aws

from blockstore.bucket import Bucket
from blockstore.connect import s3_client

VARIABLES = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_DEFAULT_REGION": "us-east-1",
}


@pytest.fixture(scope="session")
def moto_client() -> Any:
    """One client for all tests: making one takes longer than most of them."""
    with pytest.MonkeyPatch.context() as patch, mock_aws():
        for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_PROFILE"):
            patch.delenv(name, raising=False)
        for name, value in VARIABLES.items():
            patch.setenv(name, value)
        return s3_client()


@pytest.fixture
def bucket(moto_client: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        moto_client.create_bucket(Bucket="blocks")
        yield Bucket(moto_client, "blocks", pause=0.0)
