"""Encoding a file into the local S3, against a plain parallel upload of as many bytes in as many
objects from memory to the same server.

The encoder reads the file twice, checks and hashes it, transforms it, and uploads N / s times as
many bytes as it has read. Both sides use 8 threads for uploads, and share the processors with the
server. Its passes are also timed alone.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from benchmarks.encoder_memory import COLUMNS, write_matrix
from benchmarks.harness import Ratio, main
from blockstore.bucket import Bucket
from blockstore.connect import s3_client
from blockstore.manifest import Manifest, delete_matrix
from encoder import EncodeProgress, encode
from encoder.layout import MAX_THREADS
from encoder.tiles import tile_size
from polarcodes import make_code
from polarlambda.local import LocalStack

TARGET = 0.6
CASES = ((64, 1 << 30), (256, 6 << 30), (256, 1 << 30))  # N and memory; the last one needs a spool
SMALL = ((16, 1 << 30),)


def plain_upload(bucket: Bucket, manifest: Manifest) -> float:
    """Seconds to upload bodies of the sizes of all tiles, without anything else."""
    sizes = [tile_size(manifest, tile) for tile in range(manifest.tiling.count)]
    body = np.random.default_rng(1).bytes(max(sizes))
    began = time.perf_counter()
    with ThreadPoolExecutor(MAX_THREADS) as pool:

        def put(job: tuple[int, int]) -> None:
            tile, block = job
            bucket.put(f"inputs/plain/{block:05d}/{tile:04d}", body[: sizes[tile]])

        jobs = [(tile, block) for tile in range(len(sizes)) for block in range(manifest.blocks)]
        list(pool.map(put, jobs))
    took = time.perf_counter() - began
    bucket.delete_prefix("inputs/plain/")
    return took


def encode_once(bucket: Bucket, path: Path, workers: int, memory: int) -> tuple[Manifest, dict]:
    """The manifest, and seconds of the whole and of its passes."""
    marks: dict[str, float] = {}
    began = time.perf_counter()

    def look(now: EncodeProgress) -> None:
        marks[now.phase] = time.perf_counter() - began

    code = make_code("hadamard", workers=workers, data_blocks=workers * 15 // 16)
    manifest = encode(path, bucket, "measured", code, memory=memory, progress=look)
    marks["whole"] = time.perf_counter() - began
    return manifest, marks


def run(small: bool) -> Sequence[Ratio]:
    """Tiles in memory, and tiles on disk."""
    rows = 300 if small else 24_000
    pairs = 1 if small else 3
    found = []
    with tempfile.TemporaryDirectory() as folder, LocalStack() as stack:
        os.environ.update(stack.environment)
        bucket = Bucket(s3_client(), stack.bucket)
        path = Path(folder) / "a.npy"
        write_matrix(path, rows, COLUMNS)
        for workers, memory in SMALL if small else CASES:
            found += measure(bucket, path, workers, memory, pairs)
    return found


def measure(bucket: Bucket, path: Path, workers: int, memory: int, pairs: int) -> list[Ratio]:
    """Alternating pairs after one in which the server's memory and files grow; the ratio is that of
    throughputs."""
    times: list[tuple[float, float, float]] = []
    for turn in range(1 + pairs):
        manifest, marks = encode_once(bucket, path, workers, memory)
        delete_matrix(bucket, "measured")
        plain = plain_upload(bucket, manifest)
        if turn:
            times.append((marks["whole"], plain, marks["scan"]))
    ratios = [plain / whole for whole, plain, _ in times]
    name = f"N={workers}, {path.stat().st_size / 1e9:.2f} GB of float32, {memory >> 30} GB"
    whole, plain, scan = (statistics.median(column) for column in zip(*times, strict=True))
    ratio = statistics.median(ratios)
    return [
        Ratio(f"{name}: throughput / plain upload", ratio, whole, plain, "s", TARGET, True),
        Ratio(f"{name}: pass 1 / whole", scan / whole, scan, whole, "s"),
    ]


if __name__ == "__main__":
    raise SystemExit(main("encode_throughput", __doc__ or "", run))
