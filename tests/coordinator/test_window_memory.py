"""The memory of a window is kept for the next one, and nothing of the last one is seen in it."""

from __future__ import annotations

import numpy as np

from benchmarks import decode_processes
from benchmarks.folder_bucket import FolderBucket
from coordinator.decode_tasks import DecodeTask
from coordinator.windows import WindowMemory
from functions.decode.work import work


def test_the_same_bytes_serve_until_more_are_needed():
    memory = WindowMemory()
    first = memory.rows(7, 30, np.dtype("<f4"))
    again = memory.rows(5, 20, np.dtype("<f8"))
    assert first.shape == (7, 30) and again.shape == (5, 20) and again.dtype == np.float64
    assert np.shares_memory(first, again)
    larger = memory.rows(5, 40, np.dtype("<f8"))
    assert not np.shares_memory(again, larger)
    assert np.shares_memory(larger, memory.rows(2, 2, np.dtype("<f4")))


def test_a_warm_decode_function_writes_the_same_product_as_one_that_never_ran(tmp_path):
    products = []
    used = WindowMemory()
    used.rows(40, 500, np.dtype("<f4"))[:] = np.nan  # a larger window of another run
    for name, memory in (("cold", None), ("warm", used)):
        bucket = FolderBucket(tmp_path / name)
        job = decode_processes.prepare(bucket, 32, 20, 1001)
        for n in range(len(job.cut.windows)):
            task = DecodeTask(job.run, job.decoding, "window", n, n, n + 1, 1)
            check = work(bucket, task, lambda: 900.0, memory or WindowMemory())
            assert check.suspect is None
        decode_processes.check(bucket.folder, job)
        products.append((bucket.folder / job.key).read_bytes())
    assert products[0] == products[1]
