"""Does the encoder stay within `--memory`, and how close to a plain upload does it come?

A matrix file is encoded with N = 64 and N = 1024 by a process of its own, against an S3 server in
another one. Its peak resident memory is compared with the memory it was given, and its wall time
with that of a plain parallel upload of the same number of objects of the same size.

    python -m benchmarks.encoder_memory [--small]
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Ratio, WrongResult, main

ROWS, COLUMNS = 87_382, 12_288  # 4.3 GB, 4 GiB, of float32
MEMORY = 1 << 30
SMALL_ROWS = 1_366  # 64 MB
SMALL_MEMORY = 160 << 20
REDUNDANCY = 1 / 8
PIECE_ROWS = 1_000
BUCKET = "benchmark"


def write_matrix(path: Path, rows: int, columns: int) -> None:
    """A float32 matrix of uniform numbers, written piece by piece."""
    from blockstore.arrays import npy_header

    rng = np.random.default_rng(0)
    with open(path, "wb") as file:
        file.write(npy_header("f4", (rows, columns)))
        for start in range(0, rows, PIECE_ROWS):
            file.write(rng.random((min(PIECE_ROWS, rows - start), columns), "f4").data)


@contextmanager
def s3_server(folder: Path) -> Iterator[None]:
    """Moto's S3 server in a process of its own; bodies go to files in `folder`."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        port = probe.getsockname()[1]
    # Standard variables: the encoder finds this server as it would find AWS.
    os.environ |= {
        "AWS_ENDPOINT_URL_S3": f"http://localhost:{port}",
        "AWS_ACCESS_KEY_ID": "benchmark",
        "AWS_SECRET_ACCESS_KEY": "benchmark",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "localhost", "-p", str(port)],
        env={**os.environ, "TMPDIR": str(folder), "MOTO_S3_DEFAULT_KEY_BUFFER_SIZE": "65536"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 60
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("localhost", port)) == 0:
                    break
            if server.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("moto's S3 server did not start")
            time.sleep(0.1)
        yield
    finally:
        server.terminate()
        server.wait()


def in_process(*arguments: str) -> dict[str, Any]:
    """Run one measurement in a fresh process; what it printed."""
    command = [sys.executable, "-m", "benchmarks.encoder_memory", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)} failed:\n{done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def peak_bytes() -> int:
    """Peak resident memory of this program. (`ru_maxrss` would also count what the process was
    before it became this program.)"""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise RuntimeError("/proc/self/status has no VmHWM: this benchmark needs Linux")


def measure_encode(path: str, workers: int, memory: int) -> dict[str, Any]:
    """Encode the file; seconds, peak bytes, and what was stored."""
    from blockstore.bucket import Bucket
    from blockstore.connect import s3_client
    from encoder import encode
    from polarcodes import make_code

    code = make_code("polar", workers=workers, data_blocks=workers - int(workers * REDUNDANCY))
    bucket = Bucket(s3_client(), BUCKET)
    begin = time.perf_counter()
    manifest = encode(path, bucket, f"m{workers}", code, memory=memory)
    seconds = time.perf_counter() - begin
    objects = workers * manifest.tiling.count
    tile_bytes = manifest.tiling.bytes(np.dtype(manifest.dtype).itemsize)
    return {
        "seconds": seconds,
        "peak": peak_bytes(),
        "objects": objects,
        "tile_bytes": tile_bytes,
    }


def measure_upload(objects: int, size: int, threads: int = 8) -> dict[str, Any]:
    """PUT as many objects of that size from as many threads; seconds."""
    from concurrent.futures import ThreadPoolExecutor

    from blockstore.bucket import Bucket
    from blockstore.connect import s3_client

    bucket = Bucket(s3_client(), BUCKET)
    body = np.random.default_rng(1).bytes(size)
    begin = time.perf_counter()
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(lambda i: bucket.put(f"plain/{i}", body), range(objects)):
            pass
    seconds = time.perf_counter() - begin
    bucket.delete_prefix("plain/")
    return {"seconds": seconds}


def measure(workers: int, path: Path, memory: int) -> list[Ratio]:
    """Encode in a fresh process, then upload the same amount plainly in another."""
    from blockstore.bucket import Bucket
    from blockstore.connect import s3_client
    from blockstore.manifest import delete_matrix

    encoded = in_process("--encode", str(path), str(workers), str(memory))
    delete_matrix(Bucket(s3_client(), BUCKET), f"m{workers}")
    plain = in_process("--upload", str(encoded["objects"]), str(encoded["tile_bytes"]))
    name = f"N={workers} {encoded['objects']} x {encoded['tile_bytes'] / 2**20:.2f} MiB"
    peak, given = encoded["peak"] / 2**20, memory / 2**20
    if peak > given:
        raise WrongResult(f"{name}: peak memory {peak:.0f} MiB, {given:.0f} MiB were given")
    times = encoded["seconds"], plain["seconds"]
    return [
        Ratio(f"{name} peak / --memory", peak / given, peak, given, "MiB", 1.0),
        Ratio(f"{name} encode / plain upload", times[0] / times[1], *times, "s"),
    ]


def run(small: bool) -> list[Ratio]:
    """Both code lengths; 4.3 GB of float32 in 1 GiB, or 67 MB in 160 MiB when small."""
    from blockstore.connect import s3_client

    rows, memory = (SMALL_ROWS, SMALL_MEMORY) if small else (ROWS, MEMORY)
    folder = Path(tempfile.mkdtemp(prefix="polarlambda-benchmark-"))
    try:
        path = folder / "matrix.npy"
        write_matrix(path, rows, COLUMNS)
        with s3_server(folder):
            s3_client().create_bucket(Bucket=BUCKET)
            return [row for workers in (64, 1024) for row in measure(workers, path, memory)]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def one_measurement(kind: str, *arguments: str) -> dict[str, Any]:
    """What `in_process` asked for."""
    if kind == "--encode":
        path, workers, memory = arguments
        return measure_encode(path, int(workers), int(memory))
    objects, size = arguments
    return measure_upload(int(objects), int(size))


if __name__ == "__main__":
    if sys.argv[1:2] in (["--encode"], ["--upload"]):
        print(json.dumps(one_measurement(*sys.argv[1:])))
        sys.exit(0)
    sys.exit(main("encoder_memory", __doc__ or "", run))
