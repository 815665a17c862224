"""A block's tiles out of the store, the next ones on their way while one is used."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.arrays import decode_array
from blockstore.errors import ArrayRefused, CorruptObject, ObjectMissing
from blockstore.memory import PREFETCH
from blockstore.pair_tasks import CodedBlock
from blockstore.runs import RunStore
from blockstore.tasks import WorkerTask
from blockstore.tiling import TileSpan
from functions.worker.faults import TileMissing, WrongShape

__all__ = ["stream_tiles"]


def stream_tiles(
    store: RunStore, task: WorkerTask | CodedBlock, subtask: int = 0, only: range | None = None
) -> Iterator[tuple[TileSpan, NDArray[Any]]]:
    """The tiles of a block in order, or `only` these, the next `PREFETCH` of them on their way.

    Raises `TileMissing`, `CorruptObject`, `WrongShape`, or the store's errors.
    """
    tiling = task.tiling
    wanted = range(tiling.count) if only is None else only
    with ThreadPoolExecutor(PREFETCH, thread_name_prefix="tiles") as pool:
        coming: deque[Future[NDArray[Any]]] = deque()
        ahead = iter(wanted)
        try:
            for tile in wanted:
                for following in islice(ahead, PREFETCH + 1 - len(coming)):
                    coming.append(pool.submit(_load_tile, store, task, subtask, following))
                yield tiling.span(tile), coming.popleft().result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _load_tile(
    store: RunStore, task: WorkerTask | CodedBlock, subtask: int, tile: int
) -> NDArray[Any]:
    key = task.tile_key(tile, subtask)
    block = task.block(subtask)
    try:
        found = decode_array(store.bucket.get(key))
    except ObjectMissing as exc:
        raise TileMissing(f"tile {tile} of block {block} is not there: {exc}") from exc
    except (CorruptObject, ArrayRefused) as exc:
        raise CorruptObject(f"tile {tile} of block {block}: {exc}") from exc
    expected = task.tiling.span(tile).shape
    if found.shape != expected or found.dtype != np.dtype(task.dtype):
        raise WrongShape(
            f"s3://{store.bucket.name}/{key}: {expected} {task.dtype} expected, "
            f"found {found.shape} {found.dtype}: encode the matrix again"
        )
    return found
