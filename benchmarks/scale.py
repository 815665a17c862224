"""A real run at scale on one machine: a file of 6.1 GB, N = 256, through the local S3 and Lambda.

The file is generated piece by piece and never held in memory. Encode, multiply by 8 vectors and
decode within memory limits, each in a process of its own whose peak resident memory (VmHWM) is
compared with its bound; workers report their own. The product is compared with NumPy's, row chunk
by row chunk, and the encoder's throughput with a plain parallel upload of as many bytes.

    python -m benchmarks.scale [--small]
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.encode_throughput import plain_upload
from benchmarks.encoder_memory import COLUMNS, write_matrix
from benchmarks.harness import Ratio, WrongResult, main
from blockstore.answers import AnswerMetadata
from blockstore.bucket import Bucket
from blockstore.connect import s3_client
from blockstore.manifest import delete_matrix, load_manifest
from blockstore.runs import RunStore
from polarlambda.local import LocalStack

NAME = "scale"
CHUNK_ROWS = 2_000
TOLERANCE = 1e-5  # of sums of float32 products


@dataclass(frozen=True)
class Size:
    """rows of COLUMNS float32; N and s; memory of the encoder and of the coordinator; columns of x;
    functions at a time."""

    rows: int
    workers: int
    data_blocks: int
    encoder: int
    coordinator: int
    k: int
    concurrency: int


FULL = Size(125_000, 256, 240, 3 << 30, 512 << 20, 8, 16)
SMALL = Size(300, 8, 6, 192 << 20, 400 << 20, 2, 8)


def command(*arguments: str | Path) -> tuple[dict[str, Any], int, float]:
    """Run polarlambda in a process of its own: (its JSON, its peak bytes, seconds)."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "polarlambda", *map(str, arguments), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=dict(os.environ),
    )
    peak = 0
    while process.poll() is None:
        peak = max(peak, peak_of(process.pid))
        time.sleep(0.02)
    said, errors = process.communicate()
    if process.returncode:
        raise WrongResult(f"{arguments[0]} exited {process.returncode}: {errors.decode()[-500:]}")
    return json.loads(said), peak, time.perf_counter() - began


def peak_of(pid: int) -> int:
    """Peak resident bytes of a process so far; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    found = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(found[0]) << 10 if found else 0


def check_disk(folder: Path, size: Size) -> None:
    """Refuse to begin without room for the source, the coded blocks twice, and a spool."""
    source = size.rows * COLUMNS * 4
    needed = source + 2 * source * size.workers // size.data_blocks + 2 * size.workers * (8 << 20)
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise SystemExit(f"{folder} has {free:,} bytes free, this needs {needed:,}: set TMPDIR")


def check_product(path: Path, x: np.ndarray, y: np.ndarray) -> float:
    """Largest relative error of a chunk of rows against NumPy's product; the file is mapped."""
    matrix = np.load(path, mmap_mode="r")
    worst = 0.0
    for row in range(0, len(matrix), CHUNK_ROWS):
        wanted = matrix[row : row + CHUNK_ROWS].astype(np.float64) @ x
        error = np.linalg.norm(y[row : row + CHUNK_ROWS] - wanted) / np.linalg.norm(wanted)
        worst = max(worst, float(error))
    if not worst <= TOLERANCE:
        raise WrongResult(f"relative error {worst:.2e} of some rows, {TOLERANCE:.0e} is right")
    return worst


def bounded(name: str, peak: int, bound: int) -> Ratio:
    """A peak over its bound; raises if it is above."""
    mega = 1 << 20
    if peak > bound:
        raise WrongResult(f"{name}: {peak / mega:.0f} MiB, {bound / mega:.0f} MiB is the bound")
    return Ratio(f"{name}: peak / bound", peak / bound, peak / mega, bound / mega, "MiB", 1.0)


def run(small: bool) -> Sequence[Ratio]:
    """Everything, at one size."""
    size = SMALL if small else FULL
    folder = Path(tempfile.mkdtemp(prefix="polarlambda-scale-"))
    try:
        check_disk(folder, size)
        write_matrix(folder / "a.npy", size.rows, COLUMNS)
        x = np.random.default_rng(1).standard_normal((COLUMNS, size.k))
        np.save(folder / "x.npy", x)
        with LocalStack(account_concurrency=size.concurrency, build="stale") as stack:
            os.environ.update(stack.environment)
            return measure(folder, x, size, Bucket(s3_client(), stack.bucket))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(folder: Path, x: np.ndarray, size: Size, bucket: Bucket) -> list[Ratio]:
    """Encode, plan, multiply, compare."""
    path = folder / "a.npy"
    shape = ("--workers", str(size.workers), "--data-blocks", str(size.data_blocks))
    limit = ("--memory", str(size.encoder))
    peaks = []
    for turn in ("while the server's memory and files grow", "as measured"):
        if peaks:
            delete_matrix(bucket, NAME)
        _, peak, seconds = command("encode", path, NAME, *shape, *limit)
        peaks.append(peak)
        manifest = load_manifest(bucket, NAME)
        plain = plain_upload(bucket, manifest)
        print(f"encoded in {seconds:.1f} s, uploaded in {plain:.1f} s ({turn})")
    rows = [bounded("encoder", max(peaks), size.encoder)]
    giga = path.stat().st_size / 1e9
    title = f"{giga:.2f} GB, N={size.workers}: encoding throughput / plain upload"
    rows.append(Ratio(title, plain / seconds, seconds, plain, "s", 0.6, True))

    plan, _, _ = command("plan", NAME, folder / "x.npy")
    product = folder / "y.npy"
    limit = ("--memory", str(size.coordinator), "--deadline", "1500")
    result, peak, seconds = command("multiply", NAME, folder / "x.npy", "-o", product, *limit)
    if not result["exact"]:
        raise WrongResult(f"the product is {result['state']}")
    rows.append(bounded("coordinator and decoder", peak, size.coordinator))
    tops = worker_peaks(bucket, result["run"])
    rows.append(bounded(f"largest of {len(tops)} workers", max(tops), plan["worker_memory"]))
    answers = result["arrivals"]
    rows.append(Ratio("answers / N", answers / size.workers, answers, size.workers, ""))
    worst = check_product(path, x, np.load(product, mmap_mode="r"))
    rows.append(Ratio("error of the worst rows / 1e-5", worst / TOLERANCE, worst, TOLERANCE, ""))
    print(f"multiplied and decoded in {seconds:.0f} s")
    return rows


def worker_peaks(bucket: Bucket, run_id: str) -> list[int]:
    """What the workers that answered say of their memory."""
    heads = (
        bucket.client.head_object(Bucket=bucket.name, Key=info.key)
        for info in RunStore(bucket, run_id).list_results().values()
    )
    return [AnswerMetadata.from_metadata(head["Metadata"]).peak_memory for head in heads]


if __name__ == "__main__":
    raise SystemExit(main("scale", __doc__ or "", run))
