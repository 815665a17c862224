"""S3 as a fleet sees it: latencies, a request rate for each prefix, 503 SlowDown and back-off."""

from __future__ import annotations

import random
import threading
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from typing import Any

from botocore.exceptions import ClientError

from polarlambda.simulation.fleet_limits import FleetLimits, SecondCounter
from polarlambda.simulation.fleet_world import World

__all__ = ["FleetStore"]

PAGE = 1_000
LONGEST_PAUSE = 20.0


@dataclass
class _Object:
    body: bytes
    metadata: dict[str, str]
    etag: str
    at: float


class FleetStore:
    """A bucket in memory behind an S3 client's methods, on virtual time.

    Requests of the coordinator's own thread follow one another; those of its other threads are
    under way at the same time, `threads` of them. Workers ask by `ask` and `put_late`.
    """

    def __init__(self, world: World, limits: FleetLimits, threads: int, seed: int) -> None:
        self.requests: Counter[str] = Counter()
        self.slow_downs: Counter[str] = Counter()
        self._world, self._limits = world, limits
        self._random = random.Random(f"store/{seed}")
        self._main = threading.current_thread()
        self._objects: dict[str, _Object] = {}
        self._keys: list[str] = []
        self._rates: dict[tuple[str, str], SecondCounter] = {}
        self._throttled_since: dict[tuple[str, str], float] = {}
        self._lanes = [world.time] * threads
        self._processor = self._wire = world.time
        self._version = 0

    # --- the coordinator's requests: what `blockstore.bucket.Bucket` asks an S3 client for ---

    def get_object(self, *, Key: str, **request: str) -> dict[str, Any]:
        """The object, or its `Range`; conditions on its ETag."""
        with self._request("get", Key):
            found = self._there(Key)
            if request.get("IfMatch", found.etag) != found.etag:
                raise _refusal(412, "PreconditionFailed")
            if request.get("IfNoneMatch") == found.etag:
                raise _refusal(304, "304")
            body = found.body
            if "Range" in request:
                first, last = request["Range"].removeprefix("bytes=").split("-")
                body = body[int(first or 0) : int(last) + 1 if last else None]
            self._carry(len(body))
            return {
                "Body": BytesIO(body),
                "ContentLength": len(body),
                "ETag": found.etag,
                "Metadata": dict(found.metadata),
            }

    def head_object(self, *, Key: str, **_: str) -> dict[str, Any]:
        """Size, ETag and time."""
        with self._request("get", Key):
            return _described(self._there(Key))

    def put_object(
        self,
        *,
        Key: str,
        Body: bytes | bytearray,
        Metadata: Mapping[str, str] | None = None,
        IfNoneMatch: str | None = None,
        IfMatch: str | None = None,
        **_: str,
    ) -> dict[str, Any]:
        """Write the object under the conditions."""
        with self._request("put", Key):
            self._carry(len(Body))
            there = self._objects.get(Key)
            if IfNoneMatch and there is not None:
                raise _refusal(412, "PreconditionFailed")
            if IfMatch and (there is None or there.etag != IfMatch):
                raise _refusal(412, "PreconditionFailed")
            self._keep(Key, bytes(Body), dict(Metadata or {}))
            return {"ETag": self._objects[Key].etag}

    def list_objects_v2(
        self, *, Prefix: str, StartAfter: str = "", ContinuationToken: str = "", **_: str
    ) -> dict[str, Any]:
        """One page; what has been put when it is asked for is on it."""
        with self._request("list", Prefix) as served:
            keys = self._page(Prefix, ContinuationToken or StartAfter)
            served.charge(self._limits.list_page_cpu * len(keys) / PAGE)
        page: dict[str, Any] = {"IsTruncated": len(keys) == PAGE}
        if keys:
            page["Contents"] = [
                {"Key": k, "Size": len(self._objects[k].body)} | _described(self._objects[k])
                for k in keys
            ]
            page["NextContinuationToken"] = keys[-1]
        return page

    def delete_objects(self, *, Delete: Mapping[str, Any], **_: str) -> dict[str, Any]:
        """Delete the objects that are there."""
        with self._request("put", Delete["Objects"][0]["Key"]):
            for item in Delete["Objects"]:
                if self._objects.pop(item["Key"], None) is not None:
                    del self._keys[bisect_left(self._keys, item["Key"])]
        return {}

    # --- the workers' requests ---

    def ask(self, kind: str, key: str, then: Callable[[], None], lost: Callable[[], None]) -> None:
        """Request `kind` of `key` in the background: `then` when the answer begins to come, `lost`
        when S3 said SlowDown to every attempt."""
        self._attempt(kind, key, 1, then, lost)

    def put_late(self, key: str, body: bytes, metadata: dict[str, str]) -> bool:
        """Keep an object unless there is one, without a request of its own (see `ask`)."""
        if key in self._objects:
            return False
        self._keep(key, body, metadata)
        return True

    def holds(self, key: str) -> bool:
        """Whether there is such an object, without a request."""
        return key in self._objects

    def _attempt(
        self,
        kind: str,
        key: str,
        attempt: int,
        then: Callable[[], None],
        lost: Callable[[], None],
    ) -> None:
        world = self._world
        if self._admitted(kind, key, world.time):
            world.at(world.time + self._limits.platform.s3_request_seconds, then)
        elif attempt == self._limits.request_attempts:
            lost()
        else:
            later = world.time + self._pause(attempt)
            world.at(later, lambda: self._attempt(kind, key, attempt + 1, then, lost))

    # --- rates and times ---

    def _request(self, kind: str, key: str) -> _Served:
        parallel = threading.current_thread() is not self._main
        listing = kind == "list"
        seconds = self._limits.list_seconds if listing else self._limits.get_seconds
        return _Served(self, kind, key, seconds, 0.0 if listing else self._limits.get_cpu, parallel)

    def _admitted(self, kind: str, key: str, at: float) -> bool:
        """Count a request; whether the prefix's rate allows it now (a LIST counts as a GET)."""
        prefix, platform = key.split("/", 1)[0], self._limits.platform
        self.requests[kind] += 1
        what = (prefix, "put" if kind == "put" else "get")
        rate = platform.s3_puts_per_second if what[1] == "put" else platform.s3_gets_per_second
        bucket = self._rates.setdefault(what, SecondCounter(rate))
        if bucket.take(at):
            return True
        since = self._throttled_since.setdefault(what, at)
        if at - since >= self._limits.split_seconds:  # S3 has made two partitions of the prefix
            bucket.rate *= 2
            self._throttled_since[what] = at
        self.slow_downs[f"{prefix}/ {what[1]}"] += 1
        return False

    def _pause(self, attempt: int) -> float:
        return self._random.random() * min(LONGEST_PAUSE, 2.0 ** (attempt - 1))

    def _served_at(self, kind: str, key: str, at: float, seconds: float) -> float:
        """When the answer begins to come to a request made at `at`, back-off included."""
        for attempt in range(1, self._limits.request_attempts + 1):
            if self._admitted(kind, key, at):
                return at + seconds
            at += self._pause(attempt)
        raise _refusal(503, "SlowDown")

    def _carry(self, size: int) -> None:
        begin = max(self._wire, self._world.time)
        self._wire = begin + size / self._limits.platform.client_rate
        self._world.busy_until = max(self._world.busy_until, self._wire)

    # --- objects ---

    def _there(self, key: str) -> _Object:
        found = self._objects.get(key)
        if found is None:
            raise _refusal(404, "NoSuchKey")
        return found

    def _keep(self, key: str, body: bytes, metadata: dict[str, str]) -> None:
        self._version += 1
        if key not in self._objects:
            insort(self._keys, key)
        self._objects[key] = _Object(body, metadata, f'"{self._version}"', self._world.time)

    def _page(self, prefix: str, after: str) -> list[str]:
        first = bisect_left(self._keys, max(prefix, after + "\0" if after else ""))
        last = bisect_left(self._keys, prefix + "\U0010ffff")
        return self._keys[first : min(last, first + PAGE)]


class _Served:
    """One request of the coordinator: its time passes, or its thread is busy until it is over."""

    def __init__(
        self, store: FleetStore, kind: str, key: str, seconds: float, cpu: float, parallel: bool
    ) -> None:
        self._store, self._world = store, store._world
        self._cpu, self._parallel = cpu, parallel
        self._outside = self._world.outside(parallel=parallel)
        self._outside.__enter__()
        self._lane = min(range(len(store._lanes)), key=store._lanes.__getitem__) if parallel else 0
        begin = max(store._lanes[self._lane], self._world.time) if parallel else self._world.time
        self._done = store._served_at(kind, key, begin, seconds)

    def __enter__(self) -> _Served:
        self.charge(self._cpu)
        if not self._parallel:
            self._world.wait_until(self._done)
        return self

    def charge(self, cpu: float) -> None:
        """The client's processor, one for all threads, works that long on the answer."""
        store, world = self._store, self._world
        begin = max(store._processor, self._done - cpu if self._parallel else world.time)
        store._processor = begin + cpu
        self._done = max(self._done, store._processor)

    def __exit__(self, *failure: object) -> None:
        if self._parallel:
            self._store._lanes[self._lane] = self._done
        self._world.busy_until = max(self._world.busy_until, self._done)
        self._outside.__exit__(None, None, None)


def _described(found: _Object) -> dict[str, Any]:
    modified = datetime.fromtimestamp(found.at, UTC)
    return {"ContentLength": len(found.body), "ETag": found.etag, "LastModified": modified}


def _refusal(status: int, code: str) -> ClientError:
    answer = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "Simulated")
