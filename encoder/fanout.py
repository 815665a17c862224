"""Both passes by functions elsewhere: ranges of leaves, then ranges of tiles.

Functions are called and answered, a thread waiting for each. A call that fails or dies is made
again, a range that ran out of time goes on with what it left; what counts is what lies in the
bucket in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, Protocol, TypeVar

import numpy as np

from blockstore import keys
from blockstore.bucket import Bucket
from blockstore.manifest import Manifest
from encoder.digest import LEAF_BYTES, leaf_count
from encoder.engine import Engine
from encoder.errors import SourceChanged, SourceRefused
from encoder.layout import Space, plan_layout
from encoder.processors import MOST_THREADS
from encoder.progress import Counter, Listener
from encoder.remote import EncodeJob, ScanTask, SourceRef, WriteTask, scan_from_json
from encoder.scan import PartScan, Scan, combine
from encoder.sources.npy import ObjectSource
from encoder.sources.source import Source
from encoder.tiles import Missing
from polarcodes import ErasureCode

ATTEMPTS = 4  # of a task in a row without anything to show for it
SCAN_BYTES = 1 << 30  # of the source, looked at by one call
WRITE_BYTES = 2 << 30  # of coded tiles, written by one call

Task = TypeVar("Task", ScanTask, WriteTask)


class CallFailed(Exception):
    """A function did not answer, or was killed: another call may succeed."""


class CallRefused(Exception):
    """A function refused a task, or may not do it: another call would say the same."""


class Caller(Protocol):
    """Calls the encode function."""

    def call(self, event: dict[str, Any]) -> dict[str, Any]:
        """What the function returns. Raises `CallFailed` for what another call may mend; any other
        error ends the encoding."""
        ...


class RemoteEngine(Engine):
    """Both passes in functions of `memory` bytes and `disk` bytes, at most `concurrency` at
    a time."""

    def __init__(
        self,
        bucket: Bucket,
        caller: Caller,
        *,
        memory: int,
        disk: int,
        concurrency: int = 64,
        progress: Listener | None = None,
    ) -> None:
        self._bucket = bucket
        self._caller = caller
        self.memory = memory
        self._disk = disk
        self._concurrency = concurrency
        self._progress = progress

    def check(self, source: Source) -> None:
        """Raise `SourceRefused` unless the functions can read the source as it is."""
        self._ref(source)

    def room(self, source: Source) -> Space:
        """What a function has."""
        return function_space(self.memory, self._disk)

    def scan(self, source: Source) -> Scan:
        """Every function looks at a range of leaves."""
        ref = self._ref(source)
        leaves = leaf_count(source.shape, source.dtype)
        size = leaves_of_call(leaves, self._concurrency)
        tasks = [ScanTask(ref, k, min(k + size, leaves)) for k in range(0, leaves, size)]
        total = source.shape[0] * source.shape[1] * source.dtype.itemsize
        counter = Counter("scan", total, self._progress)
        parts: dict[int, PartScan] = {}

        def take(task: ScanTask, answer: dict[str, Any]) -> ScanTask | None:
            parts[task.first] = scan_from_json(answer, task.stop - task.first)
            end = min(task.stop * LEAF_BYTES, total)
            counter.add(end - task.first * LEAF_BYTES)
            return None

        self._run(tasks, take)
        return combine(source, (parts[task.first] for task in tasks))

    def write(
        self, source: Source, code: ErasureCode, manifest: Manifest, missing: Missing
    ) -> None:
        """Every function writes a range of tiles."""
        plan_layout(  # raises if the functions' memory does not hold the tiles
            manifest.tiling,
            np.dtype(manifest.dtype).itemsize,
            code.workers,
            self.memory,
            parallel_reads=source.parallel_reads,
            disk_free=self._disk,
            processors=MOST_THREADS,
        )
        job = keys.encode_job_key(manifest.name, manifest.encoding)
        self._bucket.put(job, EncodeJob(manifest, self._ref(source)).to_json())
        item = np.dtype(manifest.dtype).itemsize
        sizes = {tile: manifest.tiling.span(tile).size * item for tile in missing}
        counter = Counter("upload", sum(sizes.values()) * manifest.blocks, self._progress)
        each = manifest.tiling.bytes(item) * manifest.blocks
        size = tiles_of_call(len(missing), each, self._concurrency)
        order = list(missing)

        def part(tiles: Sequence[int]) -> WriteTask:
            wanted = {
                tile: None if len(missing[tile]) == manifest.blocks else missing[tile]
                for tile in tiles
            }
            return WriteTask(manifest.name, manifest.encoding, wanted)

        def take(task: WriteTask, answer: dict[str, Any]) -> WriteTask | None:
            done = set(answer["tiles"])
            counter.add(sum(sizes[tile] for tile in done & set(task.tiles)) * manifest.blocks)
            left = [tile for tile in task.tiles if tile not in done]
            return part(left) if left else None

        self._run([part(order[k : k + size]) for k in range(0, len(order), size)], take)
        self._bucket.delete([job])

    def _ref(self, source: Source) -> SourceRef:
        if not isinstance(source, ObjectSource):
            raise SourceRefused(
                f"{source.description}: functions read an .npy object in S3 as it is: upload it "
                f"first (aws s3 cp A.npy s3://{self._bucket.name}/{keys.INPUTS}A.npy), or encode "
                "on this machine (--on local)"
            )
        bucket, key = source.place
        if bucket != self._bucket.name or not key.startswith(keys.INPUTS):
            there = f"s3://{self._bucket.name}/{keys.INPUTS}{key.rpartition('/')[2]}"
            raise SourceRefused(
                f"s3://{bucket}/{key}: the functions may read below s3://{self._bucket.name}/"
                f"{keys.INPUTS} only: copy it there (aws s3 cp s3://{bucket}/{key} {there}), or "
                "encode on this machine (--on local)"
            )
        return SourceRef(key, source.etag)

    def _run(
        self, tasks: Sequence[Task], take: Callable[[Task, dict[str, Any]], Task | None]
    ) -> None:
        """Call for all tasks; `take` gets the answers and says what is left of a task."""
        with ThreadPoolExecutor(self._concurrency, "polarlambda-encode") as pool:
            running: dict[Future[dict[str, Any]], tuple[Task, int]] = {}

            def begin(task: Task, attempt: int) -> None:
                running[pool.submit(self._caller.call, task.to_event())] = task, attempt

            for task in tasks:
                begin(task, 1)
            try:
                while running:
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        task, attempt = running.pop(future)
                        try:
                            answer = checked(future.result())
                        except CallFailed:
                            if attempt == ATTEMPTS:
                                raise
                            begin(task, attempt + 1)
                            continue
                        left = take(task, answer)
                        if left is not None:
                            begin(left, 1)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def checked(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer that says "done"; raises the error that another one tells of."""
    if answer.get("state") == "done":
        return answer
    error = answer.get("error") or {}
    kind, message = str(error.get("type")), str(error.get("message"))
    if kind == "SourceChanged":
        raise SourceChanged(message)
    if answer.get("state") == "failed":
        raise CallFailed(f"the encode function failed: {kind}: {message}")
    raise CallRefused(f"the encode function refused: {kind}: {message}")


def function_space(memory: int, disk: int) -> Space:
    """What a function has, for any number of processors that its platform may give it: a tiling
    that this process chooses must fit there, whatever this machine has."""
    return Space(memory, disk, MOST_THREADS)


def leaves_of_call(leaves: int, concurrency: int) -> int:
    """Leaves that one call looks at."""
    return _share(leaves, SCAN_BYTES // LEAF_BYTES, concurrency)


def tiles_of_call(tiles: int, tile_bytes: int, concurrency: int) -> int:
    """Tiles that one call writes, `tile_bytes` being those of all blocks."""
    return _share(tiles, max(1, WRITE_BYTES // tile_bytes), concurrency)


def _share(count: int, most: int, concurrency: int) -> int:
    """How many of `count` things one call does: at most `most`, fewer if all calls fit at once."""
    return max(1, min(most, -(-count // concurrency)))
