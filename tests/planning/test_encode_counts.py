"""The plan of encoding on Lambda, against what the functions and their caller really send."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blockstore.arrays import encode_array
from blockstore.bucket import Bucket
from coordinator.encode_time import encode_on_lambda
from coordinator.planning import Platform, load_prices, plan_encoding
from encoder import fanout, remote_plan
from encoder.fanout import RemoteEngine
from encoder.processors import processors
from encoder.remote_plan import plan_remote
from functions.encode import app
from functions.encode.settings import EncodeSettings
from polarlambda import encode, encoding
from polarlambda.encode_plan import with_functions
from polarlambda.errors import BadInput
from polarlambda.planning import plan_matrix
from tests.counted_requests import counted
from tests.functions.coded_block import Context

MB = 1 << 20
RNG = np.random.default_rng(0)
SOURCE = "inputs/a.npy"
CONCURRENCY = 3


class InProcess:
    """Calls the handler in this process."""

    def __init__(self) -> None:
        self.kinds: list[str] = []

    def call(self, event: dict[str, Any]) -> dict[str, Any]:
        self.kinds.append("scan" if "scan" in event else "write")
        return app.handler(event, Context(900.0))


@pytest.mark.parametrize(
    ("matrix", "options", "memory", "disk"),
    [
        # two leaves, several tiles, the last block not full
        (RNG.integers(0, 256, (2000, 4500), np.uint8), {}, 150, 512),
        (RNG.standard_normal((1501, 1500)).astype("f4"), {"workers": 16}, 150, 512),
        # columns, whole ones at a time and in parts
        (np.asfortranarray(RNG.standard_normal((700, 1300)).astype(">f8")), {}, 150, 512),
        (np.asfortranarray(RNG.standard_normal((120_000, 7)).astype("f4")), {}, 136, 512),
        # a row is longer than a tile
        (RNG.integers(0, 9, (7, 1_500_000), np.int8), {"workers": 8, "data_blocks": 5}, 160, 512),
        # tiles of all blocks lie on the disk, and are read in groups of chunks
        (RNG.standard_normal((8_000, 250)), {"workers": 64, "data_blocks": 56}, 141, 1024),
        (RNG.integers(0, 2, (5, 3)).astype(bool), {"workers": 8, "data_blocks": 5}, 150, 512),
    ],
    ids=["u1", "f4", "f8-F", "f4-F-parts", "long-rows", "spool", "bool"],
)
def test_requests_and_bytes_are_those_of_the_plan(
    bucket: Bucket,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    matrix: Any,
    options: dict[str, int],
    memory: int,
    disk: int,
) -> None:
    bucket.put(SOURCE, encode_array(matrix) if matrix.flags.c_contiguous else _npy(matrix))
    settings = EncodeSettings("blocks", memory * MB, str(tmp_path))
    monkeypatch.setattr(app, "_connection", (settings, bucket))
    monkeypatch.setattr(fanout, "SCAN_BYTES", 8 * MB)
    monkeypatch.setattr(fanout, "WRITE_BYTES", 20 * MB)
    caller = InProcess()
    engine = RemoteEngine(
        bucket, caller, memory=memory * MB, disk=disk * MB, concurrency=CONCURRENCY
    )
    monkeypatch.setattr(encoding, "remote_engine", lambda *_: engine)
    monkeypatch.setattr(encoding, "open_bucket", lambda _: (bucket.check(), bucket)[1])
    with counted(bucket.client) as sent:
        manifest = encode(
            f"s3://blocks/{SOURCE}", "a", on="lambda", encode="f", bucket="blocks", **options
        )
    work = plan_remote(
        matrix.shape,
        matrix.dtype,
        np.dtype(manifest.dtype),
        blocks=manifest.blocks,
        data_blocks=manifest.data_blocks,
        order=manifest.tiling.order,
        memory=memory * MB,
        disk=disk * MB,
        concurrency=CONCURRENCY,
        processors=processors(),
    )
    plan = encode_on_lambda(work, load_prices(), Platform())
    assert work.tiling == manifest.tiling
    assert caller.kinds.count("scan") == plan.scan_calls
    assert caller.kinds.count("write") == plan.write_calls
    usage = plan.usage
    assert (sent.gets, sent.puts, sent.lists) == (usage.gets, usage.puts, usage.lists)
    assert usage.invokes == len(caller.kinds)
    opened = sent.ranged[SOURCE] - (plan.bytes_read)  # the caller reads the header once, too
    assert 0 < opened < 1 << 17
    coded = sum(size for key, size in sent.sent.items() if key.endswith(".npy"))
    assert coded == plan.bytes_written


def _npy(matrix: Any) -> bytes:
    import io

    body = io.BytesIO()
    np.save(body, matrix)
    return body.getvalue()


def test_the_counts_beyond_the_first_leaves_are_close(monkeypatch: pytest.MonkeyPatch) -> None:
    def gets() -> int:
        sizes = {"blocks": 64, "data_blocks": 56, "memory": 3008 * MB, "disk": 512 * MB}
        shape = (300_000, 12_288)
        work = plan_remote(shape, np.dtype("u1"), np.dtype("i2"), concurrency=200, **sizes)
        return work.scan.gets

    exact = gets()
    monkeypatch.setattr(remote_plan, "MOST_LEAVES", 50)
    assert gets() == pytest.approx(exact, rel=0.02)


def test_the_seconds_follow_the_formula() -> None:
    """docs/cost.md, by hand, where nothing overlaps and nothing is rounded."""
    work = plan_remote(
        (64 * 1024, 8192),
        np.dtype("u1"),
        np.dtype("i2"),
        blocks=64,
        data_blocks=64,
        memory=1769 * MB,
        disk=512 * MB,
        concurrency=200,
        processors=2,
    )
    platform = Platform()
    plan = encode_on_lambda(work, load_prices(), platform)
    leaves, tiles = 64, 2
    assert (work.scan.units, work.scan.share, plan.tiles) == (leaves, 1, tiles)
    leaf = 0.1 / 8 + (8 * MB + 65_548) / 95e6
    scan = 2 * 0.1 + 0.05 + leaf
    assert plan.scan_seconds == pytest.approx(scan)
    size = 1024 * 8192 * 2 * 64 / tiles
    made = 64 * 0.1 / 8 + size / 2 / 95e6 + size / 700e6
    tile = made + 64 * 0.1 / 8 + size / 90e6
    write = 3 * 0.1 + 0.05 + tile
    assert plan.write_seconds == pytest.approx(write, rel=1e-3)
    assert plan.seconds == pytest.approx(1.0 + 2 * 0.05 + scan + write, rel=1e-3)
    busy = leaves * scan + tiles * write + 64 * 1.0
    assert plan.usage.worker_gb_seconds == pytest.approx(busy * 1769 / 1024, rel=1e-3)
    assert plan.usage.lists == 3 and plan.usage.puts == 64 * tiles + 2


def test_more_memory_makes_full_tiles_and_the_plan_says_how_much() -> None:
    options: dict[str, Any] = {"shape": (1_281_167, 12_288), "dtype": "uint8"}
    options |= {"workers": 512, "data_blocks": 464}
    small, _ = plan_matrix(**options)
    assert small.on_lambda is not None and small.on_lambda.memory_mb == 3008
    assert small.on_lambda.tile_bytes < small.manifest.tiling.bytes(4)
    enough = small.on_lambda.full_memory_mb
    full, _ = plan_matrix(**options, encode_memory_mb=enough)
    assert full.on_lambda is not None
    assert full.on_lambda.tile_bytes == small.manifest.tiling.bytes(4)
    assert full.on_lambda.spool_bytes == 0
    less, _ = plan_matrix(**options, encode_memory_mb=enough - 1)
    assert less.on_lambda is not None
    assert less.on_lambda.tile_bytes < full.on_lambda.tile_bytes
    disk, _ = plan_matrix(**options, encode_disk_mb=10_240)
    assert disk.on_lambda is not None and disk.on_lambda.spool_bytes > 0
    assert disk.on_lambda.tile_bytes == full.on_lambda.tile_bytes


def test_what_functions_cannot_do_is_said() -> None:
    plan = plan_encoding((64_000, 512), "f8", workers=1024, data_blocks=960)
    slow = with_functions(plan, load_prices(), Platform(s3_request_seconds=30.0))
    assert slow.on_lambda is None and "take fewer blocks" in slow.not_on_lambda
    with pytest.raises(BadInput, match="encode disk must be 512 to 10,240 MB, got 100"):
        with_functions(plan, load_prices(), Platform(), disk_mb=100)
    with pytest.raises(ValueError, match="memory must be at least"):
        plan_remote(
            (1 << 18, 4),
            np.dtype("f8"),
            np.dtype("f8"),
            blocks=120_000,
            data_blocks=100_000,
            memory=512 * MB,
            disk=512 * MB,
            concurrency=200,
        )
