"""How much faster is a product decoded by chunks over several processes than by one, and what is
read for it?

Every process runs the decode function's own code on ranges of one decoding whose plan it reads from
the store, a folder here: what is measured is the decoder, not a local S3 server that would take its
share of the same two cores. BLAS has one thread in each process. Processes have started, imported
and decoded once before the clock runs, and keep a window's memory, as warm functions do. The
product is checked against the matrix product, and the bytes read against the bytes needed, answer
by answer.

    python -m benchmarks.decode_processes [--small]
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_name] = "1"  # before NumPy is imported, here and in the processes

import numpy as np  # noqa: E402

from benchmarks.folder_bucket import FolderBucket  # noqa: E402
from benchmarks.harness import Ratio, WrongResult, main  # noqa: E402
from blockstore import keys  # noqa: E402
from blockstore.answers import AnswerMetadata  # noqa: E402
from blockstore.arrays import npy_header  # noqa: E402
from blockstore.subtasks import Subtasks  # noqa: E402
from coordinator.cut import NPY, cut_product  # noqa: E402
from coordinator.decode import Decoder  # noqa: E402
from coordinator.decode_job import DecodeJob  # noqa: E402
from coordinator.decode_tasks import DecodeTask  # noqa: E402
from coordinator.form import AnswerForm  # noqa: E402
from coordinator.layout import Layout  # noqa: E402
from coordinator.stored_answers import StoredAnswer, StoredAnswers  # noqa: E402
from coordinator.windows import WindowMemory  # noqa: E402
from functions.decode.work import work  # noqa: E402
from polarcodes import make_code  # noqa: E402

RUN = keys.new_run_id(1, bytes(10))
MEMORY = WindowMemory()  # of a process, which is as warm as an environment that did a task before
PROCESSES, WINDOWS, REPEATS = 8, 8, 3
SPARE = 8  # answers beyond s, whose equations check the product
WORKERS, DATA_BLOCKS, ROWS = 256, 224, 640_000  # rows of a block, one column of x


def prepare(bucket: FolderBucket, workers: int, data_blocks: int, rows: int) -> DecodeJob:
    """Write the answers of a random product, its rows known by a seed, and the job."""
    code = make_code("hadamard", workers=workers, data_blocks=data_blocks, seed=0)
    layout = Layout((data_blocks * rows,), data_blocks, 1, rows, 1)
    dtype = np.dtype("<f4")
    epsilon = float(np.finfo(dtype).eps)
    form = AnswerForm((rows,), dtype, epsilon, Subtasks.single(workers), layout)
    answers = StoredAnswers(form, bucket)
    header = npy_header(dtype, (rows,))
    for worker in range(workers):
        bucket.put(keys.result_key(RUN, worker), header)
    step = 50_000
    for first in range(0, rows, step):
        coded = code.encode(true_columns(data_blocks, first, min(first + step, rows)))
        for worker in range(workers):
            with open(bucket.folder / keys.result_key(RUN, worker), "ab") as file:
                file.write(coded[worker].astype(dtype).tobytes())
    order = np.random.default_rng(1).permutation(workers)
    decisive = next(
        sorted(order[:m].tolist())
        for m in range(data_blocks + SPARE, workers + 1)
        if code.decodable(order[:m].tolist())
    )
    for worker in decisive:
        stored = StoredAnswer(keys.result_key(RUN, worker), len(header), "")
        answers.add(worker, stored, AnswerMetadata(x_digest="", encoding="", scale=1.0))
    decoder = Decoder.of(code, answers, decisive)
    job = DecodeJob(
        run=RUN,
        code=code.to_manifest(),
        places=tuple(decisive),
        answers=tuple(answers.where(decisive)),
        dtype=dtype.str,
        epsilon=decoder.epsilon,
        scale=decoder.scale,
        predicted=decoder.predicted,
        layout=layout,
        cut=cut_product(layout, 4, -(-rows // WINDOWS), replace(NPY, least=1)),
        kind="npy",
    )
    job = replace(job, upload=job.target(bucket).upload)
    job.store(bucket, decoder.plan)
    return job


def true_columns(data_blocks: int, first: int, last: int) -> np.ndarray:
    """Columns of the decoded product: any function of block and row that rounds to float32."""
    blocks, rows = np.arange(data_blocks)[:, None], np.arange(first, last)[None, :]
    return (((blocks * 7919 + rows * 104_729) % 8191) / 4096.0 - 1.0).astype(np.float32)


def decode_range(folder: str, decoding: str, number: int) -> tuple[dict[str, int], float]:
    """What one process does: a window, as a decode function would; bytes read by answer, and CPU
    seconds."""
    bucket, began = FolderBucket(Path(folder)), time.process_time()
    task = DecodeTask(RUN, decoding, "window", number, number, number + 1, 1)
    work(bucket, task, lambda: 900.0, MEMORY)
    return bucket.read, time.process_time() - began


def ready(_: int) -> int:
    """Every process has imported what it needs."""
    time.sleep(0.2)
    return os.getpid()


def timed(pool: multiprocessing.pool.Pool, folder: Path, job: DecodeJob) -> tuple[float, float]:
    """(seconds, CPU seconds) in which a pool decodes all windows; WrongResult unless every byte is
    read once."""
    began = time.perf_counter()
    tasks = [(str(folder), job.decoding, n) for n in range(len(job.cut.windows))]
    read: dict[str, int] = {}
    busy = 0.0
    for counts, cpu in pool.starmap(decode_range, tasks, chunksize=1):
        busy += cpu
        for key, count in counts.items():
            read[key] = read.get(key, 0) + count
    seconds = time.perf_counter() - began
    needed = {answer.key: 4 * job.layout.length for answer in job.answers}
    if read != needed:
        raise WrongResult(f"{sum(read.values())} bytes were read, {sum(needed.values())} needed")
    return seconds, busy


def check(folder: Path, job: DecodeJob) -> None:
    """The product is the true one, row by row."""
    job.target(FolderBucket(folder)).finish()
    found = np.load(folder / job.key, mmap_mode="r").reshape(job.layout.blocks, -1)
    step = 50_000
    for first in range(0, found.shape[1], step):
        part = found[:, first : first + step]
        wanted = true_columns(job.layout.blocks, first, first + part.shape[1])
        if not np.allclose(part, wanted, rtol=0, atol=1e-4):
            raise WrongResult(f"rows {first} to {first + step} of the blocks are wrong")


def run(small: bool) -> list[Ratio]:
    """One process against eight, alternating."""
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # not to measure a disk
    folder = Path(tempfile.mkdtemp(prefix="polarlambda-benchmark-", dir=memory))
    sizes = (64, 48, 40_000) if small else (WORKERS, DATA_BLOCKS, ROWS)
    context = multiprocessing.get_context("spawn")
    try:
        job = prepare(FolderBucket(folder), *sizes)
        processes = 2 if small else PROCESSES
        with context.Pool(1) as one, context.Pool(processes) as many:
            for pool, count in ((one, 1), (many, processes)):
                pool.map(ready, range(4 * count), chunksize=1)
                timed(pool, folder, job)  # once to be warm
            pairs = [
                (timed(one, folder, job), timed(many, folder, job))
                for _ in range(1 if small else REPEATS)
            ]
        check(folder, job)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    needed = len(job.answers) * 4 * job.layout.length
    return [
        Ratio(
            name=f"{processes} processes over 1 on {os.cpu_count()} cores, {needed / 1e6:,.0f} MB",
            ratio=statistics.median(single[0] / several[0] for single, several in pairs),
            value=statistics.median(several[0] for _, several in pairs),
            reference=statistics.median(single[0] for single, _ in pairs),
            unit="s",
            target=1.7,
            at_least=True,
        ),
        Ratio(
            name="CPU time of all of them over that of one, whatever else the machine does",
            ratio=statistics.median(several[1] / single[1] for single, several in pairs),
            value=statistics.median(several[1] for _, several in pairs),
            reference=statistics.median(single[1] for single, _ in pairs),
            unit="s",
        ),
        Ratio("bytes read over bytes needed", 1.0, needed / 1e6, needed / 1e6, "MB", 1.0),
    ]


if __name__ == "__main__":
    sys.exit(main("decode_processes", __doc__ or "", run))
