"""Two encoded matrices in memory, and workers that run the worker's own code on simulated time."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from blockstore import keys
from blockstore.arrays import encode_array
from blockstore.manifest import Manifest
from blockstore.pair_tasks import PairTask, parse_task
from blockstore.pairs import MatrixPair
from blockstore.runs import RunStore
from blockstore.tiling import Tiling
from coordinator.outcome import Outcome
from coordinator.pair_run import start_pair
from coordinator.ports import InvokeReport
from coordinator.report import Billing
from functions.worker import one
from polarcodes import ErasureCode
from tests.coordinator.fake_platform import FakeClock
from tests.memory_bucket import MemoryBucket

RUN = keys.new_run_id(1_700_000_000_000, bytes(10))


def encoded(bucket: MemoryBucket, name: str, rows: np.ndarray, code: ErasureCode) -> Manifest:
    """A matrix in tiles of two columns, as the encoder would write it."""
    n, d = rows.shape
    b = -(-n // code.data_blocks)
    padded = np.zeros((code.data_blocks * b, d), rows.dtype)
    padded[:n] = rows
    coded = code.encode(padded.reshape(code.data_blocks, -1)).reshape(code.workers, b, d)
    manifest = Manifest(
        name=name,
        created="2026-01-01T00:00:00+00:00",
        rows=n,
        columns=d,
        source_dtype=rows.dtype.str,
        block_rows=b,
        dtype=coded.dtype.str,
        tiling=Tiling(b, d, b, 2),
        code=code.to_manifest(),
        encoding=f"{len(name):016x}",
        source_digest=f"sha256:{name}",
        source="test",
    )
    for block, entries in enumerate(coded):
        for tile in range(manifest.tiling.count):
            span = manifest.tiling.span(tile)
            part = np.ascontiguousarray(entries[:, span.col0 : span.col1])
            bucket.put(keys.tile_key(name, manifest.encoding, block, tile), encode_array(part))
    bucket.put(keys.manifest_key(name), manifest.to_json())
    return manifest


@dataclass
class PairPlatform:
    """A (n1, d) and B (d, n2) on a grid; `dead` workers never answer, others after 0.1 s and more
    for their number. Implements `coordinator.ports.Invoker`."""

    left: ErasureCode
    right: ErasureCode
    shape: tuple[int, int, int] = (13, 5, 11)
    dtype: str = "<f8"
    dead: frozenset[int] = frozenset()
    spoil: Callable[[int, np.ndarray], np.ndarray] = lambda worker, answer: answer
    clock: FakeClock = field(default_factory=FakeClock)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(1)
        n1, d, n2 = self.shape
        self.bucket = MemoryBucket(now=self.clock.now)
        self.A = (rng.standard_normal((n1, d)) * 50).astype(self.dtype)
        self.B = (rng.standard_normal((d, n2)) * 50).astype(self.dtype)
        self.pair = MatrixPair(
            encoded(self.bucket, "left", self.A, self.left),
            encoded(self.bucket, "right2", np.ascontiguousarray(self.B.T), self.right),
        )
        self.invoked: list[tuple[int, int]] = []
        self._reports: list[InvokeReport] = []
        self.bucket.requests.clear()

    @property
    def product(self) -> np.ndarray:
        return self.A.astype("f8") @ self.B.astype("f8")

    def start(self, **options) -> Outcome:
        usual = {"invoker": self, "clock": self.clock, "run": RUN}
        billing = Billing(worker_timeout=60.0)
        return start_pair(self.bucket, self.pair, **{**usual, "billing": billing, **options})

    def check(self) -> None:
        pass

    def submit(self, tasks: Sequence[PairTask]) -> None:
        for task in tasks:
            self.invoked.append((task.worker, task.attempt))
            self._reports.append(InvokeReport(task.worker, task.attempt))
            if task.worker in self.dead:
                continue
            event = json.loads(json.dumps(task.to_event()))
            store = RunStore(self.bucket, task.run)
            key = keys.result_key(task.run, task.worker)
            there = key in self.bucket.objects
            one.do(store, parse_task(event), lambda: 300.0, False)
            if key in self.bucket.objects and not there:
                stored = self.bucket.objects[key]
                stored.since = self.clock.now() + 0.1 + task.worker / 1000
                header = len(stored.body) - 8 * self.left_entries()
                answer = np.frombuffer(stored.body, np.dtype("<f8"), offset=header)
                changed = self.spoil(task.worker, answer)
                stored.body = stored.body[:header] + changed.tobytes()

    def left_entries(self) -> int:
        return self.pair.left.block_rows * self.pair.right.block_rows

    def reports(self) -> list[InvokeReport]:
        reports, self._reports = self._reports, []
        return reports

    def close(self) -> None:
        pass
