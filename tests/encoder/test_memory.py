"""Memory is shared out as promised; the disk spool leaves nothing behind, even after SIGKILL."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from moto.server import ThreadedMotoServer

from blockstore.bucket import Bucket
from blockstore.connect import s3_client
from blockstore.manifest import list_matrices, load_manifest
from blockstore.tiling import choose_tiling, least_memory
from encoder import MemoryTooSmall, SpoolTooSmall, encode
from encoder.layout import DISK_MARGIN, Layout, fits_in_memory, plan_layout
from polarcodes import make_code
from tests.encoder.decoding import coded_blocks

MB = 1 << 20


@given(
    st.integers(1, 10**6),
    st.integers(1, 10**7),
    st.sampled_from([2, 4, 8]),
    st.sampled_from([1, 2, 8, 64, 256, 1024, 4096]),
    st.integers(0, 8 << 30),
    st.booleans(),
    st.sampled_from([1, 4]),
    st.sampled_from([None, 1, 8, 100]),
)
def test_every_layout_fits_the_memory_it_is_given(
    rows: int,
    columns: int,
    itemsize: int,
    workers: int,
    extra: int,
    spool: bool,
    reads: int,
    threads: int | None,
) -> None:
    memory = least_memory(workers) + extra
    tiling = choose_tiling(rows, columns, itemsize, workers, memory, spool)
    layout = plan_layout(
        tiling,
        itemsize,
        workers,
        memory,
        parallel_reads=reads,
        threads=threads,
        disk_free=1 << 50 if spool else None,
    )
    assert layout.peak_bytes <= memory
    assert 1 <= layout.chunk_entries <= layout.group_entries <= tiling.bytes(1)
    assert 1 <= layout.threads <= (threads or 8)
    if not layout.spooled:
        assert layout.group_entries == tiling.bytes(1)
        assert layout.stages * workers * tiling.bytes(itemsize) <= memory
    if threads is None:
        assert layout.spooled is not fits_in_memory(tiling.bytes(itemsize), workers, memory, reads)


def test_4_gb_at_the_default_memory() -> None:
    small_code = plan_layout(choose_tiling(1561, 12288, 4, 64), 4, 64, 1 << 30, disk_free=1 << 40)
    assert not small_code.spooled and small_code.peak_bytes <= 1 << 30
    large_code = plan_layout(choose_tiling(98, 12288, 4, 1024), 4, 1024, 1 << 30, disk_free=1 << 40)
    assert large_code.spooled and large_code.peak_bytes <= 1 << 30


def test_what_does_not_fit_is_refused_with_the_numbers() -> None:
    tiling = choose_tiling(2000, 1000, 4, 64, target=8 * MB)
    needed = 64 * tiling.bytes(4)
    with pytest.raises(MemoryTooSmall, match="spool") as refused:
        plan_layout(tiling, 4, 64, 200 * MB)
    number = int(str(refused.value).split("at least ")[1].split(" bytes")[0].replace(",", ""))
    assert number > needed
    with pytest.raises(SpoolTooSmall, match=f"{needed + DISK_MARGIN:,}"):
        plan_layout(tiling, 4, 64, 200 * MB, disk_free=needed)
    assert plan_layout(tiling, 4, 64, 200 * MB, disk_free=needed + DISK_MARGIN).stages == 1
    assert not plan_layout(tiling, 4, 64, 1 << 30).spooled


class DiskUsage(NamedTuple):
    total: int
    used: int
    free: int


MATRIX = np.random.default_rng(0).integers(-100, 100, (192, 30_000)).astype("i2")
WIDE = make_code("polar", workers=64, data_blocks=48)


@pytest.mark.parametrize("spool", [None, False])
def test_large_tiles_of_many_workers_go_through_disk_or_become_smaller(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spool: Any
) -> None:
    layouts: list[Layout] = []
    import encoder.engine as engine

    def recording(*arguments: Any, **options: Any) -> Layout:
        layouts.append(plan_layout(*arguments, **options))
        return layouts[-1]

    monkeypatch.setattr(engine, "plan_layout", recording)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    manifest = encode(MATRIX, bucket, "m", WIDE, memory=140 * MB, spool=spool)
    assert layouts[0].spooled is (spool is None)
    assert (manifest.tiling.count == 1) is (spool is None)
    assert (coded_blocks(bucket, manifest) == exact(manifest)).all()
    assert list(tmp_path.iterdir()) == []


def exact(manifest: Any) -> Any:
    """The coded blocks: sums of 48 numbers below 100 are exact in float64 too."""
    blocks = MATRIX.astype("f8").reshape(48, -1)
    return (np.rint(WIDE.generator()) @ blocks).reshape(64, manifest.block_rows, -1)


def test_too_little_disk_makes_smaller_tiles(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = DISK_MARGIN + 10 * MB
    monkeypatch.setattr(shutil, "disk_usage", lambda _: DiskUsage(1 << 40, 0, free))
    manifest = encode(MATRIX, bucket, "m", WIDE, memory=140 * MB)
    assert manifest.tiling.count > 1
    assert 64 * manifest.tiling.bytes(2) <= 10 * MB
    assert (coded_blocks(bucket, manifest) == exact(manifest)).all()


def test_a_disk_that_runs_full_is_a_typed_error_and_leaves_no_matrix(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(SpoolTooSmall, match="ran full"):
        encode(MATRIX, bucket, "m", WIDE, memory=140 * MB, spool=tmp_path)
    assert list_matrices(bucket) == []
    assert list(tmp_path.iterdir()) == []


def test_a_spool_folder_that_cannot_be_written_is_a_typed_error(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(**_: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.TemporaryFile", denied)
    with pytest.raises(SpoolTooSmall, match="Permission denied; choose another folder"):
        encode(MATRIX, bucket, "m", WIDE, memory=140 * MB, spool=tmp_path)
    assert list(bucket.list("")) == []


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    """A bucket on a server, for encoders in other processes."""
    moto = ThreadedMotoServer("localhost", port=0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://{host}:{port}")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    client = s3_client()
    client.create_bucket(Bucket="blocks")
    yield Bucket(client, "blocks")
    client.close()
    moto.stop()


SCRIPT = textwrap.dedent(
    """
    import sys
    from blockstore.bucket import Bucket
    from blockstore.connect import s3_client
    from encoder import encode
    from polarcodes import make_code
    code = make_code("polar", workers=64, data_blocks=48)
    bucket = Bucket(s3_client(), "blocks")
    encode(sys.argv[1], bucket, "m", code, memory=140 << 20, spool=sys.argv[2], threads=1)
    print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
    """
)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from /proc")
def test_after_sigkill_the_spool_is_gone_and_a_second_run_completes_within_its_memory(
    server: Bucket, tmp_path: Path
) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    np.save(tmp_path / "a.npy", MATRIX)
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "a.npy"), str(spool)]
    victim = subprocess.Popen(command)
    while len(list(server.list("matrices/"))) < 3:
        assert victim.poll() is None, "the encoder ended before it could be killed"
        time.sleep(0.01)
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    left = {info.key: info.last_modified for info in server.list("matrices/")}
    assert 3 <= len(left) < 64 and list_matrices(server) == []
    assert list(spool.iterdir()) == []
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert int(done.stdout) << 10 <= 140 * MB, "peak memory above what was given"
    there = {info.key: info.last_modified for info in server.list("matrices/")}
    assert len(there) == 65 and all(there[key] == left[key] for key in left)
    manifest = load_manifest(server, "m")
    assert (coded_blocks(server, manifest) == exact(manifest)).all()
