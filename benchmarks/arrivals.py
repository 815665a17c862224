"""How long does a coordinator take for 4,096 arrivals, and how much memory?

The answers of a product lie in moto's S3 server, in a process of its own; each becomes visible to
the coordinator at a random moment within ten seconds. Everything else is real: the coordinator is
`coordinator.run.start_run` in a fresh process with a memory budget, which lists all keys page by
page, fetches and verifies what is new, decodes, checks the left-over equations and writes the
result. Once with answers that it holds, once with answers that stay in S3 and are decoded in
chunks. The product is compared with the true one.

    python -m benchmarks.arrivals [--small]
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.encoder_memory import BUCKET, peak_bytes, s3_server
from benchmarks.harness import Ratio, WrongResult, main

WORKERS, REDUNDANCY, BLOCK_ROWS = 4_096, 1 / 8, 2_048
SMALL_WORKERS = 64
LAST_ARRIVAL = 10.0  # seconds; arrivals are spread evenly
SMALL_ARRIVAL = 0.3
MEMORY = 450 << 20
MOST_SECONDS, MOST_BYTES = 60.0, 500e6
MATRIX, COLUMNS = "arrivals", 4


def prepare(workers: int) -> dict[str, Any]:
    """Put the manifest and all answers of the run; what the coordinator is to be told."""
    from blockstore import keys
    from blockstore.answers import AnswerMetadata
    from blockstore.arrays import array_digest, encode_array
    from blockstore.bucket import Bucket
    from blockstore.connect import s3_client
    from blockstore.manifest import Manifest, save_manifest
    from blockstore.tiling import Tiling
    from polarcodes import make_code

    client = s3_client(pool=24)
    if not client.list_buckets()["Buckets"]:
        client.create_bucket(Bucket=BUCKET)
    bucket = Bucket(client, BUCKET)
    data_blocks = workers - int(workers * REDUNDANCY)
    code = make_code("hadamard", workers=workers, data_blocks=data_blocks, seed=0)
    A, x = matrix(data_blocks), np.ones(COLUMNS, "<f4")
    coded = code.encode(A.reshape(data_blocks, -1)).reshape(workers, BLOCK_ROWS, COLUMNS)
    manifest = Manifest(
        name=MATRIX,
        created="2026-01-01T00:00:00+00:00",
        rows=len(A),
        columns=COLUMNS,
        source_dtype="<f4",
        block_rows=BLOCK_ROWS,
        dtype="<f4",
        tiling=Tiling(BLOCK_ROWS, COLUMNS, BLOCK_ROWS, COLUMNS),
        code=code.to_manifest(),
        encoding="0123456789abcdef",
        source_digest="sha256:0",
        source="random numbers",
    )
    save_manifest(bucket, manifest)
    run = keys.new_run_id(int(time.time() * 1000), bytes(10))
    metadata = AnswerMetadata(
        x_digest=array_digest(x), encoding=manifest.encoding, scale=1.0, finite=True
    ).to_metadata()

    def put(worker: int) -> None:
        answer = coded[worker].astype("f8") @ x.astype("f8")
        key = keys.result_key(run, worker)
        bucket.put(key, encode_array(answer.astype("<f4")), metadata=metadata)

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(put, range(workers)))
    return {"run": run, "workers": workers}


def matrix(data_blocks: int) -> np.ndarray:
    return np.random.default_rng(0).random((data_blocks * BLOCK_ROWS, COLUMNS), "f4")


def coordinate(run: str, workers: int, stored: bool) -> dict[str, Any]:
    """The coordinator, in a process of its own: seconds, peak memory, requests, the value's key."""
    from blockstore import keys
    from blockstore.bucket import Bucket, ObjectInfo
    from blockstore.connect import s3_client
    from blockstore.manifest import load_manifest
    from coordinator.collect import fetch_threads
    from coordinator.decode_options import DecodeOptions
    from coordinator.ports import InvokeReport
    from coordinator.run import start_run

    began = time.monotonic()
    last = SMALL_ARRIVAL if workers == SMALL_WORKERS else LAST_ARRIVAL
    arrives = np.random.default_rng(1).random(workers) * last

    class Arriving(Bucket):
        """A listing shows an answer from the moment at which it arrives."""

        listed = fetched = 0

        def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
            now = time.monotonic() - began
            self.listed += 1
            for info in super().list(prefix, start_after=start_after):
                late = "/results/" in info.key and arrives[keys.parse_result_key(info.key)] > now
                if not late:
                    yield info

        def get_object(self, key: str) -> tuple[bytes, dict[str, str]]:
            self.fetched += 1
            return super().get_object(key)

        def peek(self, key: str, count: int) -> Any:
            self.fetched += 1
            return super().peek(key, count)

    class Nobody:
        """Accepts every invocation (`coordinator.ports.Invoker`)."""

        def __init__(self) -> None:
            self._reports: list[InvokeReport] = []

        def check(self) -> None: ...

        def submit(self, tasks: Sequence[Any]) -> None:
            self._reports += [InvokeReport(task.worker, task.attempt) for task in tasks]

        def reports(self) -> list[InvokeReport]:
            reports, self._reports = self._reports, []
            return reports

        def close(self) -> None: ...

    threads = fetch_threads(workers)
    bucket = Arriving(s3_client(pool=threads + 8), BUCKET)
    if stored:  # as if the answers were too large: what does not depend on their size is measured
        DecodeOptions.in_memory = lambda self, form, spec: False  # type: ignore[method-assign]
    outcome = start_run(
        bucket,
        load_manifest(bucket, MATRIX),
        np.ones(COLUMNS, "<f4"),
        invoker=Nobody(),
        run=run,
        options=DecodeOptions(memory=MEMORY),
        threads=threads,
    )
    return {
        "seconds": time.monotonic() - began,
        "peak": peak_bytes(),
        "exact": outcome.exact and outcome.verified,
        "held": outcome.value is not None,
        "key": outcome.result_key,
        "arrivals": outcome.arrivals,
        "listings": bucket.listed,
        "fetched": bucket.fetched,
    }


def measure(workers: int, stored: bool) -> dict[str, Any]:
    """One run; WrongResult unless it is exact, verified and right."""
    from blockstore.arrays import get_array
    from blockstore.bucket import Bucket
    from blockstore.connect import s3_client

    told = prepare(workers)
    command = [sys.executable, "-m", "benchmarks.arrivals", "--coordinator"]
    command.append(json.dumps({**told, "stored": stored}))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    data_blocks = workers - int(workers * REDUNDANCY)
    wanted = matrix(data_blocks).astype("f8").sum(axis=1)
    value = get_array(Bucket(s3_client(), BUCKET), found["key"])
    error = np.linalg.norm(value - wanted) / np.linalg.norm(wanted)
    if not (found["exact"] and error < 1e-5 and found["held"] is not stored):
        raise WrongResult(f"{found}, relative error {error:.1e}")
    return found


def run(small: bool) -> list[Ratio]:
    """Answers that are held, and answers that stay in S3."""
    workers, rows = SMALL_WORKERS if small else WORKERS, []
    folder = Path(tempfile.mkdtemp(prefix="polarlambda-benchmark-"))
    try:
        with s3_server(folder):
            for name, stored in (("held", False), ("left in S3", True)):
                found = measure(workers, stored)
                what = f"N = {workers:,}, answers {name}"
                detail = f"{found['listings']} pages, {found['fetched']} answers fetched"
                seconds, peak = found["seconds"], found["peak"]
                rows += [
                    Ratio(
                        f"{what}: seconds ({detail})",
                        seconds / MOST_SECONDS,
                        seconds,
                        MOST_SECONDS,
                        "s",
                        1.0,
                    ),
                    Ratio(
                        f"{what}: peak memory",
                        peak / MOST_BYTES,
                        peak / 1e6,
                        MOST_BYTES / 1e6,
                        "MB",
                        1.0,
                    ),
                ]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return rows


if __name__ == "__main__":
    if sys.argv[1:2] == ["--coordinator"]:
        print(json.dumps(coordinate(**json.loads(sys.argv[2]))))
    else:
        sys.exit(main("arrivals", __doc__ or "", run))
