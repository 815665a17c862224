"""A worker's memory is a few tiles, whatever the block: the model bounds what is measured."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from blockstore.memory import RUNTIME_BYTES, worker_memory
from blockstore.tasks import WorkerTask
from tests.functions.coded_block import make_block

# A block of which every tile is made when it is asked for, as S3 would send it: 40 tiles of 8 MB.
SCRIPT = """
import json, sys
import numpy as np
from blockstore.arrays import encode_array
from blockstore.tasks import WorkerTask
from blockstore.runs import RunStore
from functions.worker.product import multiply
from tests.memory_bucket import MemoryBucket

task = WorkerTask.from_event(json.loads(sys.argv[1]))

class Tiles(MemoryBucket):
    def get(self, key, **options):
        if "/coded/" not in key:
            return super().get(key, **options)
        return encode_array(np.ones((task.tile_rows, task.tile_columns), task.dtype))

store = RunStore(Tiles(), task.run)
store.save_x(np.ones(task.x_shape, task.x_dtype))
product = multiply(store, task, lambda: 60.0)
assert (product.value == task.columns).all()
status = open("/proc/self/status").read()
print(int(status.split("VmHWM:")[1].split()[0]) << 10)
"""


def large_task(dtype: str, k: int) -> WorkerTask:
    from blockstore.arrays import array_digest

    columns = 4096
    tile_rows = (8 << 20) // (columns * np.dtype(dtype).itemsize)
    small = make_block(np.ones((2, 8), dtype), np.ones(8, "<f4"), (2, 8)).task
    return replace(
        small,
        block_rows=40 * tile_rows,
        columns=columns,
        tile_rows=tile_rows,
        tile_columns=columns,
        x_shape=(columns, k),
        x_digest=array_digest(np.ones((columns, k), "<f4")),
    )


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/status is Linux's")
@pytest.mark.parametrize(("dtype", "k"), [("<i2", 1), ("<f4", 4)])
def test_the_peak_is_below_what_the_model_predicts(dtype, k):
    task = large_task(dtype, k)
    command = [sys.executable, "-c", SCRIPT, json.dumps(task.to_event())]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(ran.stdout) <= worker_memory(task) < RUNTIME_BYTES + (100 << 20)


def test_the_model_grows_with_tiles_x_and_answer_and_not_with_the_block():
    task = large_task("<i2", 1)
    base = worker_memory(task)
    assert worker_memory(replace(task, block_rows=2 * task.block_rows)) - base < 1 << 20
    assert worker_memory(replace(task, tile_rows=2 * task.tile_rows)) > base + (30 << 20)
    assert worker_memory(replace(task, x_shape=(task.columns, 64))) > base + (10 << 20)
