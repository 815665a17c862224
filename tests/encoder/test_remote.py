"""Functions that encode write the same bytes as this process, whatever dies on the way."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blockstore.bucket import Bucket
from encoder import MemoryTooSmall, SourceChanged, SourceRefused, encode, fanout
from encoder.fanout import CallFailed, CallRefused, RemoteEngine
from functions.encode import app
from functions.encode.settings import EncodeSettings
from polarcodes import make_code
from tests.functions.coded_block import Context

MB = 1 << 20
MEMORY = 150 * MB
RNG = np.random.default_rng(0)
CODE = make_code("hadamard", workers=8, data_blocks=6)


class Handlers:
    """Calls the handler in this process; `fate` may raise, or change what is asked or answered."""

    def __init__(self, fate: Callable[[dict[str, Any], int], Any] | None = None) -> None:
        self.calls: list[dict[str, Any]] = []
        self._fate = fate or (lambda event, turn: None)
        self._seconds = 900.0
        self._lock = threading.Lock()

    def short_of_time(self) -> None:
        self._seconds = 1.0

    def call(self, event: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            turn = len(self.calls)
            self.calls.append(event)
        self._fate(event, turn)
        return app.handler(event, Context(self._seconds))


class OneAtATime(Handlers):
    """moto closes an object that is replaced under another thread that reads it; S3 does not."""

    def call(self, event: dict[str, Any]) -> dict[str, Any]:
        with _MOTO:
            return super().call(event)


_MOTO = threading.Lock()


@pytest.fixture(autouse=True)
def connected(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        app, "_connection", (EncodeSettings("blocks", MEMORY, str(tmp_path)), bucket)
    )
    # ranges that are small enough for several functions to have something to do
    monkeypatch.setattr(fanout, "SCAN_BYTES", 8 * MB)
    monkeypatch.setattr(fanout, "WRITE_BYTES", 1)


def upload(bucket: Bucket, matrix: Any, tmp_path: Path, key: str = "inputs/a.npy") -> str:
    np.save(tmp_path / "a.npy", matrix)
    bucket.put(key, (tmp_path / "a.npy").read_bytes())
    return f"s3://blocks/{key}"


def objects(bucket: Bucket, name: str) -> dict[str, bytes]:
    prefix = f"matrices/{name}/coded/"
    return {info.key[len(prefix) :]: bucket.get(info.key) for info in bucket.list(prefix)}


def remotely(
    bucket: Bucket, url: str, handlers: Handlers, name: str = "far", **options: Any
) -> Any:
    engine = RemoteEngine(bucket, handlers, memory=MEMORY, disk=512 * MB, concurrency=3)
    return encode(url, bucket, name, CODE, memory=MEMORY, engine=engine, **options)


MATRICES = [
    RNG.integers(0, 256, (2000, 4500), np.uint8),  # two leaves, several tiles
    RNG.standard_normal((1501, 1500)).astype(np.float32),
    np.asfortranarray(RNG.standard_normal((700, 1300)).astype(">f8")),
    RNG.integers(0, 2, (5, 3)).astype(bool),
]


@pytest.mark.parametrize("matrix", MATRICES, ids=["u1", "f4", "f8-F", "bool"])
def test_the_same_objects_as_the_local_encoder(bucket: Bucket, tmp_path: Path, matrix: Any) -> None:
    url = upload(bucket, matrix, tmp_path)
    handlers = Handlers()
    far = remotely(bucket, url, handlers)
    near = encode(tmp_path / "a.npy", bucket, "near", CODE, memory=MEMORY)
    assert (far.encoding, far.source_digest) == (near.encoding, near.source_digest)
    assert objects(bucket, "far") == objects(bucket, "near")
    kinds = Counter("scan" if "scan" in event else "write" for event in handlers.calls)
    leaves = -(-matrix.nbytes // (8 * MB))
    assert kinds["scan"] == leaves
    assert kinds["write"] == far.tiling.count
    again = remotely(bucket, url, handlers)
    assert again == far
    assert len(handlers.calls) == sum(kinds.values()) + leaves  # looked at, nothing to write


def test_what_dies_or_fails_is_called_again(bucket: Bucket, tmp_path: Path) -> None:
    url = upload(bucket, MATRICES[0], tmp_path)

    def fate(event: dict[str, Any], turn: int) -> None:
        if turn % 2 == 1:
            raise CallFailed("killed")

    handlers = Handlers(fate)
    remotely(bucket, url, handlers)
    encode(tmp_path / "a.npy", bucket, "near", CODE, memory=MEMORY)
    assert objects(bucket, "far") == objects(bucket, "near")


def test_what_never_succeeds_ends_it_and_publishes_nothing(bucket: Bucket, tmp_path: Path) -> None:
    url = upload(bucket, MATRICES[0], tmp_path)

    def fate(event: dict[str, Any], turn: int) -> None:
        if "write" in event and "2" in event["write"]["tiles"]:
            raise CallFailed("killed")

    handlers = Handlers(fate)
    with pytest.raises(CallFailed, match="killed"):
        remotely(bucket, url, handlers)
    assert bucket.head("matrices/far/manifest.json") is None
    count = len(handlers.calls)

    remotely(bucket, url, going_on := Handlers())
    written = [e["write"]["tiles"] for e in going_on.calls if "write" in e]
    assert 0 < len(written) < count  # what was there was kept
    encode(tmp_path / "a.npy", bucket, "near", CODE, memory=MEMORY)
    assert objects(bucket, "far") == objects(bucket, "near")


def test_a_range_that_runs_out_of_time_goes_on(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fanout, "WRITE_BYTES", 1 << 40)
    url = upload(bucket, MATRICES[0], tmp_path)
    handlers = Handlers()
    handlers.short_of_time()
    engine = RemoteEngine(bucket, handlers, memory=MEMORY, disk=512 * MB, concurrency=1)
    far = encode(url, bucket, "far", CODE, memory=MEMORY, engine=engine)
    writes = [list(e["write"]["tiles"]) for e in handlers.calls if "write" in e]
    assert writes == [[str(t) for t in range(k, far.tiling.count)] for k in range(far.tiling.count)]


def test_only_blocks_that_are_missing_are_written_again(bucket: Bucket, tmp_path: Path) -> None:
    url = upload(bucket, MATRICES[1], tmp_path)
    far = remotely(bucket, url, Handlers())
    before = objects(bucket, "far")
    lost = [f"matrices/far/coded/{far.encoding}/{w:05d}/0000.npy" for w in (2, 5)]
    bucket.delete(lost)
    remotely(bucket, url, handlers := Handlers())
    assert [e["write"]["tiles"] for e in handlers.calls if "write" in e] == [{"0": [2, 5]}]
    assert objects(bucket, "far") == before


def test_the_first_bad_row_is_named_and_nothing_is_written(bucket: Bucket, tmp_path: Path) -> None:
    matrix = np.zeros((3000, 1500), np.float32)
    matrix[2900, 3] = matrix[2000, 7] = np.nan
    url = upload(bucket, matrix, tmp_path)
    with pytest.raises(SourceRefused, match="row 2000 has nan in column 7"):
        remotely(bucket, url, Handlers())
    assert [info.key for info in bucket.list("")] == ["inputs/a.npy"]


def test_a_source_that_is_replaced_meanwhile_is_noticed(bucket: Bucket, tmp_path: Path) -> None:
    url = upload(bucket, MATRICES[0], tmp_path)

    def fate(event: dict[str, Any], turn: int) -> None:
        if "write" in event and turn > 2:
            bucket.put("inputs/a.npy", b"another")

    with pytest.raises(SourceChanged, match="replaced"):
        remotely(bucket, url, OneAtATime(fate))
    assert bucket.head("matrices/far/manifest.json") is None


def test_sources_that_functions_cannot_read_are_refused(bucket: Bucket, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", MATRICES[3])
    with pytest.raises(SourceRefused, match=r"aws s3 cp A\.npy s3://blocks/inputs/"):
        remotely(bucket, str(tmp_path / "a.npy"), handlers := Handlers())
    elsewhere = upload(bucket, MATRICES[3], tmp_path, "elsewhere/a.npy")
    with pytest.raises(
        SourceRefused, match=r"aws s3 cp s3://blocks/elsewhere/a\.npy s3://blocks/inp"
    ):
        remotely(bucket, elsewhere, handlers)
    assert handlers.calls == []


def test_functions_that_are_too_small_are_named_before_anything_is_written(
    bucket: Bucket, tmp_path: Path
) -> None:
    url = upload(bucket, MATRICES[0], tmp_path)
    encode(tmp_path / "a.npy", bucket, "far", CODE, memory=MEMORY)
    bucket.delete_prefix("matrices/far/coded/")  # its tiles are those of more memory
    engine = RemoteEngine(bucket, handlers := Handlers(), memory=135 * MB, disk=0)
    with pytest.raises((MemoryTooSmall, ValueError), match="at least"):
        encode(url, bucket, "far", CODE, memory=135 * MB, engine=engine)
    assert not any("write" in event for event in handlers.calls)


@pytest.mark.parametrize(
    ("event", "rule"),
    [
        ({}, "version"),
        ({"version": 1}, "write"),
        ({"version": 1, "scan": {"first": 2, "stop": 2}}, "stop"),
        ({"version": 1, "scan": {"first": 0, "stop": 1}, "source": {"key": "runs/x", "etag": ""}},
         "inputs/"),
        ({"version": 1, "write": {"matrix": "a/b"}}, "slash"),
        ({"version": 1, "write": {"matrix": "m", "encoding": "0" * 16, "tiles": {"x": None}}},
         "tiles"),
    ],
)  # fmt: skip
def test_events_that_are_no_tasks(event: dict[str, Any], rule: str) -> None:
    answer = app.handler(event, Context())
    assert answer["state"] == "refused"
    assert rule in answer["error"]["message"]
    with pytest.raises(CallRefused, match=rule):
        fanout.checked(answer)
