"""How fast does the coordinator take answers in, and how soon after the decisive one is the result
in the store?

N = 256 workers, 5,000 rows a block, against moto's S3 server in a process of its own. The workers
are a thread that puts answers; everything else is the coordinator's own code.

    python -m benchmarks.collect [--small]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.encoder_memory import BUCKET, s3_server
from blockstore import keys
from blockstore.answers import AnswerMetadata
from blockstore.arrays import encode_array
from blockstore.bucket import Bucket, ObjectInfo
from blockstore.connect import s3_client
from blockstore.manifest import Manifest, save_manifest
from blockstore.runs import RunStore
from blockstore.tasks import WorkerTask
from blockstore.tiling import Tiling
from coordinator import events
from coordinator.collect import THREADS
from coordinator.ports import InvokeReport
from coordinator.run import resume_run, start_run
from polarcodes import make_code

WORKERS, DATA_BLOCKS, BLOCK_ROWS, COLUMNS = 256, 192, 5_000, 8
MOST_SECONDS, LEAST_SHARE = 0.5, 0.7


class TimedBucket(Bucket):
    """Notes when a listing begins that is the first to show a key, and when the result is there."""

    def __init__(self, client: Any) -> None:
        super().__init__(client, BUCKET)
        self.watched = ""
        self.first_listing = self.shown = self.written = 0.0

    def list(self, prefix: str, *, start_after: str | None = None) -> Iterator[ObjectInfo]:
        began = time.perf_counter()
        self.first_listing = self.first_listing or began
        for info in super().list(prefix, start_after=start_after):
            if info.key == self.watched and not self.shown:
                self.shown = began
            yield info

    def put(self, key: str, body: bytes | bytearray, **options: Any) -> str:
        etag = super().put(key, body, **options)
        if key.endswith("/result.npy"):
            self.written = time.perf_counter()
        return etag


class Workers:
    """Accepts every invocation (`coordinator.ports.Invoker`); the answers are put elsewhere."""

    def __init__(self) -> None:
        self._reports: list[InvokeReport] = []

    def check(self) -> None: ...

    def submit(self, tasks: Sequence[WorkerTask]) -> None:
        self._reports += [InvokeReport(task.worker, task.attempt) for task in tasks]

    def reports(self) -> list[InvokeReport]:
        reports, self._reports = self._reports, []
        return reports

    def close(self) -> None: ...


class Benchmark:
    """One matrix, its answers, and a fresh run for every measurement."""

    def __init__(self, workers: int, data_blocks: int, rows: int) -> None:
        rng = np.random.default_rng(0)
        self.code = make_code("polar", workers=workers, data_blocks=data_blocks)
        self.x = rng.standard_normal(COLUMNS).astype("<f4")
        A = rng.standard_normal((data_blocks, rows * COLUMNS)).astype("<f4")
        coded = self.code.encode(A).reshape(workers, rows, COLUMNS)
        self.bodies = [encode_array(block @ self.x) for block in coded]
        self.manifest = Manifest(
            name="benchmark",
            created="2026-01-01T00:00:00+00:00",
            rows=data_blocks * rows,
            columns=COLUMNS,
            source_dtype="<f4",
            block_rows=rows,
            dtype="<f4",
            tiling=Tiling(rows, COLUMNS, rows, COLUMNS),
            code=self.code.to_manifest(),
            encoding="0123456789abcdef",
            source_digest="sha256:0",
            source="random numbers",
        )
        self.client = s3_client(pool=THREADS + 8)
        self.client.create_bucket(Bucket=BUCKET)
        save_manifest(Bucket(self.client, BUCKET), self.manifest)
        self.order = [int(w) for w in rng.permutation(workers)]
        self.runs = 0

    def new_run(self) -> str:
        self.runs += 1
        return keys.new_run_id(self.runs, bytes(10))

    def put(self, run: str, workers: Sequence[int], digest: str) -> None:
        metadata = AnswerMetadata(x_digest=digest, encoding=self.manifest.encoding, scale=1.0)
        bucket = Bucket(self.client, BUCKET)

        def put(worker: int) -> None:
            key = keys.result_key(run, worker)
            bucket.put(key, self.bodies[worker], metadata=metadata.to_metadata())

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(put, workers))

    def decisive(self) -> int:
        """The place in `order` of the answer that makes the set decodable."""
        arrivals = self.code.arrivals()
        for place, worker in enumerate(self.order):
            arrivals.add(worker)
            if arrivals.decodable:
                return place
        raise RuntimeError("all answers together do not decode")

    def result_latency(self) -> float:
        """Seconds from the listing that first shows the decisive answer to the result in S3."""
        run, bucket, place = self.new_run(), TimedBucket(self.client), self.decisive()
        bucket.watched = keys.result_key(run, self.order[place])
        digest = ""

        def feed(event: events.Event) -> None:
            nonlocal digest
            if isinstance(event, events.Dispatched):
                digest = RunStore(bucket, run).load_spec().x_digest
                self.put(run, self.order[:place], digest)
            elif isinstance(event, events.Arrived) and event.arrivals == place:
                last = threading.Timer(0.3, self.put, (run, [self.order[place]], digest))
                last.start()

        start_run(bucket, self.manifest, self.x, invoker=Workers(), run=run, on_event=feed)
        return bucket.written - bucket.shown

    def take_in(self, plain_first: bool) -> tuple[float, float]:
        """(seconds in which a resumed run takes all answers in, seconds of plain parallel GETs)."""
        run, bucket = self.new_run(), TimedBucket(self.client)

        def leave(event: events.Event) -> None:
            if isinstance(event, events.Dispatched):
                self.put(run, range(len(self.bodies)), RunStore(bucket, run).load_spec().x_digest)
                raise InterruptedError

        with contextlib.suppress(InterruptedError):
            start_run(bucket, self.manifest, self.x, invoker=Workers(), run=run, on_event=leave)
        taken: list[float] = []

        def note(event: events.Event) -> None:
            if isinstance(event, events.Decodable):
                taken.append(time.perf_counter())

        plain = self.plain_gets(run) if plain_first else 0.0
        looks = TimedBucket(self.client)
        resume_run(looks, run, invoker=Workers(), on_event=note)
        return taken[0] - looks.first_listing, plain or self.plain_gets(run)

    def plain_gets(self, run: str) -> float:
        names = [keys.result_key(run, worker) for worker in range(len(self.bodies))]

        def get(key: str) -> int:
            return len(self.client.get_object(Bucket=BUCKET, Key=key)["Body"].read())

        began = time.perf_counter()
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(get, names))
        return time.perf_counter() - began


def run(small: bool) -> dict[str, Any]:
    """Medians."""
    folder = Path(tempfile.mkdtemp(prefix="polarlambda-benchmark-"))
    try:
        with s3_server(folder):
            sizes = (64, 48, 500) if small else (WORKERS, DATA_BLOCKS, BLOCK_ROWS)
            bench, repeats = Benchmark(*sizes), 3 if small else 7
            latencies = [bench.result_latency() for _ in range(repeats)]
            pairs = [bench.take_in(pair % 2 == 0) for pair in range(repeats)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {
        "workers": sizes[0],
        "block_rows": sizes[2],
        "result_seconds": statistics.median(latencies),
        "result_seconds_all": latencies,
        "take_in_seconds": statistics.median(taken for taken, _ in pairs),
        "plain_get_seconds": statistics.median(plain for _, plain in pairs),
        "share_of_plain_rate": statistics.median(plain / taken for taken, plain in pairs),
    }


def main() -> int:
    """Exit code 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="64 workers, 500 rows a block")
    results = run(parser.parse_args().small)
    print(f"N = {results['workers']}, {results['block_rows']:,} rows a block")
    rows = [
        ("decisive answer listed -> result in S3", "result_seconds", "s", MOST_SECONDS),
        ("all answers taken in", "take_in_seconds", "s", None),
        ("plain parallel GETs of the same", "plain_get_seconds", "s", None),
        ("rate, share of plain GETs'", "share_of_plain_rate", "", LEAST_SHARE),
    ]
    for label, name, unit, target in rows:
        bound = "" if target is None else f"  (target {target:g})"
        print(f"{label:<40} {results[name]:>7.3f} {unit}{bound}")
    target_file = Path(__file__).parent / "results" / "collect.json"
    target_file.parent.mkdir(exist_ok=True)
    target_file.write_text(json.dumps(results, indent=1) + "\n")
    met = results["result_seconds"] <= MOST_SECONDS
    return int(not (met and results["share_of_plain_rate"] >= LEAST_SHARE))


if __name__ == "__main__":
    sys.exit(main())
