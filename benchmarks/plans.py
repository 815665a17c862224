"""Is what the planner says of encode and decode functions what they do?

The functions' own code runs in this process, one call after the other, on a bucket that takes the
planner's 0.1 s for the first byte of a request and gives its 95 and 90 MB/s. Requests must be those
of the plan, each one; seconds are compared: what the transform and the decoder need on this
machine is not what the planner assumes of Lambda, and HTTP takes no time here.

    python -m benchmarks.plans [--small]
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy is imported, as in a function

import numpy as np  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from benchmarks.harness import Ratio, WrongResult, main  # noqa: E402
from benchmarks.slow_client import SlowClient  # noqa: E402
from blockstore import keys  # noqa: E402
from blockstore.answers import AnswerMetadata  # noqa: E402
from blockstore.arrays import encode_array  # noqa: E402
from blockstore.bucket import Bucket  # noqa: E402
from blockstore.products import StoredProduct  # noqa: E402
from blockstore.subtasks import Subtasks  # noqa: E402
from coordinator.budget import least_memory  # noqa: E402
from coordinator.decode_fleet import DecodeFunctions  # noqa: E402
from coordinator.decode_plan import plan_decode  # noqa: E402
from coordinator.decode_stored import StoredDecoder  # noqa: E402
from coordinator.decode_tasks import DecodeTask  # noqa: E402
from coordinator.decode_wish import DecodeWish  # noqa: E402
from coordinator.encode_time import encode_on_lambda  # noqa: E402
from coordinator.form import AnswerForm  # noqa: E402
from coordinator.layout import Layout  # noqa: E402
from coordinator.planning import Platform, load_prices  # noqa: E402
from coordinator.ports import InvokeReport, SystemClock  # noqa: E402
from coordinator.stored_answers import StoredAnswer, StoredAnswers  # noqa: E402
from coordinator.windows import WindowMemory  # noqa: E402
from encoder import encode  # noqa: E402
from encoder.fanout import RemoteEngine  # noqa: E402
from encoder.processors import processors  # noqa: E402
from encoder.remote_plan import plan_remote  # noqa: E402
from functions.decode.work import work as decode_range  # noqa: E402
from functions.encode import app  # noqa: E402
from functions.encode.settings import EncodeSettings  # noqa: E402
from polarcodes import ErasureCode, make_code  # noqa: E402

MB = 1 << 20
MEMORY_MB, DISK_MB = 3008, 512
NOTHING = 1e-9  # seconds: functions are warm, and nobody has to invoke them
WARM = Platform(start_seconds=NOTHING, invoke_seconds=NOTHING, worker_overhead_seconds=NOTHING)
RUN = keys.new_run_id(1, bytes(10))


class Context:
    """What Lambda tells a function."""

    def get_remaining_time_in_millis(self) -> int:
        """Enough."""
        return 900_000


class Timed:
    """Calls the encode function here, adding up how long each kind of task took."""

    def __init__(self) -> None:
        self.seconds = {"scan": 0.0, "write": 0.0}

    def call(self, event: dict[str, Any]) -> dict[str, Any]:
        """One call."""
        began = time.perf_counter()
        with redirect_stdout(io.StringIO()):  # the function's log
            answer = app.handler(event, Context())
        self.seconds["scan" if "scan" in event else "write"] += time.perf_counter() - began
        return answer


class Decoders:
    """The decode function here; implements `coordinator.ports.Invoker`."""

    def __init__(self, bucket: Bucket) -> None:
        self.bucket, self.seconds = bucket, 0.0
        self._memory = WindowMemory()

    def check(self) -> None:
        """It is there."""

    def close(self) -> None:
        """Nothing is open."""

    def reports(self) -> list[InvokeReport]:
        """Nothing failed."""
        return []

    def submit(self, tasks: Sequence[DecodeTask]) -> None:
        """Do all tasks."""
        for task in tasks:
            began = time.perf_counter()
            decode_range(self.bucket, task, lambda: 900.0, self._memory)
            self.seconds += time.perf_counter() - began


def encoding(
    bucket: Bucket, rows: int, code: ErasureCode, folder: str, platform: Platform
) -> list[Ratio]:
    """Encode `rows` x 16,384 uint8 by functions."""
    matrix = np.random.default_rng(0).integers(0, 256, (rows, 16_384), np.uint8)
    bucket.put("inputs/a.npy", encode_array(matrix))
    app._connection = EncodeSettings(bucket.name, MEMORY_MB * MB, folder), bucket
    caller = Timed()
    engine = RemoteEngine(bucket, caller, memory=MEMORY_MB * MB, disk=DISK_MB * MB, concurrency=1)
    bucket.client.begin()
    url = f"s3://{bucket.name}/inputs/a.npy"
    manifest = encode(url, bucket, "a", code, memory=engine.memory, engine=engine)
    bucket.client.end()
    counted = plan_remote(
        matrix.shape,
        matrix.dtype,
        np.dtype(manifest.dtype),
        blocks=code.workers,
        data_blocks=code.data_blocks,
        memory=MEMORY_MB * MB,
        disk=DISK_MB * MB,
        concurrency=1,
        processors=processors(),
    )
    plan = encode_on_lambda(counted, load_prices(), platform)
    # the plan counts a HEAD of the bucket that the command makes first
    require(
        "encoding", (bucket.client.gets + 1, bucket.client.puts), (plan.usage.gets, plan.usage.puts)
    )
    busy = plan.usage.worker_gb_seconds * 1024 / MEMORY_MB
    scan = plan.scan_calls * plan.scan_seconds
    size = f"{matrix.nbytes / 1e6:.0f} MB of uint8, N = {code.workers}"
    return [
        ratio(f"encode functions check {size}", caller.seconds["scan"], scan),
        ratio("encode functions write its tiles", caller.seconds["write"], busy - scan),
    ]


def decoding(
    bucket: Bucket, block_rows: int, code: ErasureCode, where: str, platform: Platform
) -> Ratio:
    """Decode a product of 50 columns by windows ("local") or by functions ("lambda")."""
    s, k = code.data_blocks, 50
    product = np.random.default_rng(1).standard_normal((s, block_rows * k)).astype("f4")
    form = AnswerForm(
        (block_rows, k),
        np.dtype("<f4"),
        float(np.finfo("f4").eps),
        Subtasks.single(code.workers),
        Layout((s * block_rows, k), s, 1, block_rows, k),
    )
    answers, decisive = answered(bucket, form, code, product)
    memory = least_memory(form, 0) + 40 * MB
    invoker = Decoders(bucket)
    functions = DecodeFunctions(lambda: invoker, MEMORY_MB * MB, 900.0, most=4)
    decoder = StoredDecoder(
        bucket,
        code,
        answers,
        RUN,
        "npy",
        SystemClock(),
        memory,
        functions=functions if where == "lambda" else None,
    )
    bucket.client.begin()
    began = time.perf_counter()
    made = decoder.decode(decisive)
    seconds = time.perf_counter() - began
    bucket.client.end()
    if made is None or made[0].contradiction is not None:
        raise WrongResult(f"decode {where}: {made}")
    found = StoredProduct.open(bucket, made[1]).load().reshape(s, -1)
    if not np.allclose(found, product, atol=1e-4):
        raise WrongResult(f"decode {where}: another product")
    wish = DecodeWish(where, "npy", memory, MEMORY_MB, functions.most)
    plan = plan_decode(
        form, code, len(decisive), 0, wish, load_prices(), platform, coordinator_mb=MEMORY_MB
    )
    sent, planned = (bucket.client.gets, bucket.client.puts + 1), (plan.usage.gets, plan.usage.puts)
    require(f"decode {where}", sent, planned)  # the plan counts the run's status, too
    if where == "local":
        size = f"{plan.windows} windows decode {plan.read / 1e6:.0f} MB of answers"
        return ratio(f"{size}, N = {code.workers}", seconds, plan.seconds)
    busy = plan.usage.decode_gb_seconds * 1024 / MEMORY_MB
    return ratio(f"{plan.calls} decode functions do the same", invoker.seconds, busy)


def answered(
    bucket: Bucket, form: AnswerForm, code: ErasureCode, product: NDArray[Any]
) -> tuple[StoredAnswers, list[int]]:
    """The answers that make up a product, as workers would have written them."""
    answers = StoredAnswers(form, bucket)
    order = np.random.default_rng(2).permutation(code.workers).tolist()
    some = range(code.data_blocks + 1, code.workers + 1)
    decisive = sorted(order[: next(m for m in some if code.decodable(order[:m]))])
    coded = code.encode(product)
    for place in decisive:
        key = keys.result_key(RUN, place)
        etag = bucket.put(key, encode_array(coded[place].astype("f4").reshape(form.block_shape)))
        told = AnswerMetadata(x_digest="", encoding="", scale=9.0)
        answers.add(place, StoredAnswer(key, 128, etag), told)
    return answers, decisive


def ratio(name: str, measured: float, planned: float) -> Ratio:
    """Measured over planned seconds."""
    return Ratio(name, measured / planned, measured, planned, "s")


def require(name: str, sent: tuple[int, int], planned: tuple[int, int]) -> None:
    """Raise WrongResult unless the requests are those of the plan."""
    if sent != planned:
        raise WrongResult(f"{name}: {sent} GETs and PUTs were sent, {planned} planned")


def run(small: bool) -> list[Ratio]:
    """Encode, then decode; on a faster bucket where it is to be short."""
    code = make_code("hadamard", workers=64, data_blocks=56, seed=0)
    folder = tempfile.mkdtemp(prefix="polarlambda-benchmark-")
    speed = 1000.0 if small else 1.0
    platform = replace(
        WARM,
        s3_request_seconds=WARM.s3_request_seconds / speed,
        s3_read_rate=WARM.s3_read_rate * speed,
        s3_write_rate=WARM.s3_write_rate * speed,
    )
    pace = platform.s3_request_seconds, platform.s3_read_rate, platform.s3_write_rate
    try:
        bucket = Bucket(SlowClient(*pace), "blocks")
        rows = encoding(bucket, 256 if small else 8192, code, folder, platform)
        for where in ("lambda",) if small else ("lambda", "local"):
            bucket = Bucket(SlowClient(*pace), "blocks")
            rows.append(decoding(bucket, 200 if small else 20_000, code, where, platform))
    finally:
        app._connection = None
        shutil.rmtree(folder, ignore_errors=True)
    return rows


if __name__ == "__main__":
    sys.exit(main("plans", __doc__ or "", run))
