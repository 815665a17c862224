"""A bucket in this process (moto) that takes its time: seconds to the first byte of every request,
and a link of so many bytes a second each way, shared by all requests under way."""

from __future__ import annotations

import os
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from moto import mock_aws

from blockstore.bucket import Bucket
from blockstore.connect import s3_client

__all__ = ["SlowBucket", "slow_bucket"]

READS = ("GetObject", "HeadObject", "HeadBucket")
WRITES = ("PutObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload")


class Link:
    """Bytes pass one after the other."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._free = 0.0
        self._lock = threading.Lock()

    def until(self, size: int, request: float) -> float:
        """When `size` bytes that are asked for now have passed."""
        with self._lock:
            self._free = max(self._free, time.monotonic() + request) + size / self._rate
            return self._free


class SlowBucket(Bucket):
    """`gets` and `puts` count the requests since `slow` was set; nothing waits before."""

    def __init__(self, client: Any, name: str, request: float, read: float, write: float) -> None:
        super().__init__(client, name)
        self.slow = False
        self._request, self._read, self._write = request, Link(read), Link(write)
        self._kinds: Counter[str] = Counter()
        self._counting = threading.Lock()
        client.meta.events.register("before-call.s3", self._wait)

    @property
    def gets(self) -> int:
        """Requests that are billed as GETs."""
        return sum(self._kinds[name] for name in READS)

    @property
    def puts(self) -> int:
        """Requests that are billed as PUTs."""
        return sum(self._kinds[name] for name in WRITES)

    def begin(self) -> None:
        """Count and wait from now on."""
        self._kinds.clear()
        self.slow = True

    def _wait(self, model: Any, params: dict[str, Any], **_: Any) -> None:
        if not self.slow:
            return
        with self._counting:
            self._kinds[model.name] += 1
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", params["headers"].get("Range", ""))
        if model.name in ("PutObject", "UploadPart"):
            body = params["body"]
            size = len(body) if isinstance(body, bytes | bytearray) else body.getbuffer().nbytes
            ready = self._write.until(size, self._request)
        else:
            size = int(asked[2]) - int(asked[1]) + 1 if asked else 0
            ready = self._read.until(size, self._request)
        time.sleep(max(0.0, ready - time.monotonic()))


@contextmanager
def slow_bucket(request: float, read: float, write: float) -> Iterator[SlowBucket]:
    """An empty bucket, with credentials that are nobody's."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        os.environ[name] = "benchmark"
    os.environ["AWS_DEFAULT_REGION"] = "us-east-1"
    os.environ.pop("AWS_ENDPOINT_URL_S3", None)
    with mock_aws():
        client = s3_client(pool=32)
        client.create_bucket(Bucket="blocks")
        yield SlowBucket(client, "blocks", request, read, write)
