"""A bucket on moto: real botocore requests, answered in the process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from moto import mock_aws

from blockstore.bucket import Bucket
from blockstore.connect import s3_client


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    with mock_aws():
        client = s3_client()
        client.create_bucket(Bucket="blocks")
        yield Bucket(client, "blocks", pause=0.0)
