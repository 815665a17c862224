"""Does a worker stay within the memory that `plan` predicts?

The worker's own handler does one product in a process of its own, against an S3 server in another
one; its peak resident memory is compared with `blockstore.memory.worker_memory`.

    python -m benchmarks.worker_memory [--small]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.encoder_memory import BUCKET, peak_bytes, s3_server

# name: block rows, columns, tile rows, dtype, columns of x
SIZES = {
    "one small tile": (16, 4_096, 16, "<i2", 1),
    "128 MB of int16": (5_461, 12_288, 341, "<i2", 1),
    "512 MB of float32, k = 8": (10_922, 12_288, 170, "<f4", 8),
}
SMALL = {
    "one small tile": (16, 4_096, 16, "<i2", 1),
    "32 MB of int16": (1_365, 12_288, 341, "<i2", 1),
    "64 MB of float32, k = 64": (1_365, 12_288, 170, "<f4", 64),
}
ENCODING = "0123456789abcdef"


class Context:
    """An invocation with time enough."""

    def get_remaining_time_in_millis(self) -> int:
        return 900_000


def prepare(rows: int, columns: int, tile_rows: int, dtype: str, k: int) -> dict[str, Any]:
    """Upload x and the tiles of one block; the worker's event."""
    import numpy as np

    from blockstore import keys
    from blockstore.arrays import array_digest, put_array
    from blockstore.bucket import Bucket
    from blockstore.connect import s3_client
    from blockstore.runs import RunStore
    from blockstore.tasks import WorkerTask

    bucket = Bucket(s3_client(), BUCKET)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((columns, k)).astype("<f4")
    run = keys.new_run_id(rows, k.to_bytes(10, "big"))
    task = WorkerTask(
        run=run,
        attempt=1,
        worker=0,
        workers=64,
        matrix="benchmark",
        encoding=ENCODING,
        block_rows=rows,
        columns=columns,
        tile_rows=tile_rows,
        tile_columns=columns,
        dtype=dtype,
        x_shape=x.shape,
        x_dtype=x.dtype.str,
        x_digest=array_digest(x),
    )
    RunStore(bucket, run).save_x(x)
    for tile in range(task.tiling.count):
        body = rng.integers(-9, 9, task.tiling.span(tile).shape, "i2").astype(dtype)
        put_array(bucket, task.tile_key(tile), body)
    return task.to_event()


def measure(event: dict[str, Any]) -> dict[str, Any]:
    """Run the handler here; peak bytes and the prediction."""
    os.environ["POLARLAMBDA_BUCKET"] = BUCKET
    from functions.worker.app import handler

    answer = handler(event, Context())
    if answer["state"] != "answered":
        raise RuntimeError(f"the worker did not answer: {answer}")
    peak = peak_bytes()
    from blockstore.memory import worker_memory
    from blockstore.tasks import WorkerTask

    return {"peak": peak, "predicted": worker_memory(WorkerTask.from_event(event))}


def in_process(event: dict[str, Any]) -> dict[str, Any]:
    """`measure` in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.worker_memory", "--event", json.dumps(event)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the measurement failed:\n{done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def run(small: bool) -> dict[str, Any]:
    """All rows of the table."""
    from blockstore.bucket import Bucket
    from blockstore.connect import s3_client

    folder = Path(tempfile.mkdtemp(prefix="polarlambda-benchmark-"))
    rows = []
    try:
        with s3_server(folder):
            Bucket(s3_client(), BUCKET).client.create_bucket(Bucket=BUCKET)
            for name, size in (SMALL if small else SIZES).items():
                rows.append({"block": name, **in_process(prepare(*size))})
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return {"rows": rows}


def show(results: dict[str, Any]) -> None:
    """The table."""
    print(f"{'block':<28} {'predicted':>10} {'peak':>8} {'ratio':>6}")
    for row in results["rows"]:
        ratio = row["peak"] / row["predicted"]
        print(
            f"{row['block']:<28} {row['predicted'] >> 20:>8} MB {row['peak'] >> 20:>5} MB "
            f"{ratio:>6.2f}"
        )


def main() -> int:
    """Exit code 1 if a peak is above the prediction."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="blocks of 64 MB at most")
    parser.add_argument("--event", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.event:
        print(json.dumps(measure(json.loads(options.event))))
        return 0
    results = run(options.small)
    show(results)
    target = Path(__file__).parent / "results" / "worker_memory.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(results, indent=1) + "\n")
    return int(any(row["peak"] > row["predicted"] for row in results["rows"]))


if __name__ == "__main__":
    sys.exit(main())
