"""Where the coded tiles of all workers wait between the transform and their upload."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.arrays import byte_view
from encoder.spool import SpoolFile


class Stage(ABC):
    """Room for one tile of every worker, which is encoded in chunks."""

    @abstractmethod
    def buffer(self, offset: int, base: int, entries: int) -> NDArray[Any]:
        """A C-contiguous (N, entries) array for the chunk that begins `offset` entries into the
        tile, in a group of chunks that begins at `base`; contents arbitrary."""

    @abstractmethod
    def keep(self, offset: int, chunk: NDArray[Any]) -> None:
        """Keep an encoded chunk; its buffer is used no more."""

    @abstractmethod
    def copy_tile(self, worker: int, view: memoryview) -> None:
        """Copy the first `len(view)` bytes of a worker's tile to `view`."""

    @abstractmethod
    def clear(self) -> None:
        """Forget the tile: the room is for another one."""

    @abstractmethod
    def close(self) -> None:
        """Give the room back."""


class MemoryStage(Stage):
    """N tiles in memory, chunk after chunk, each of which was encoded in its place."""

    def __init__(self, workers: int, entries: int, dtype: np.dtype[Any]) -> None:
        self._workers = workers
        self._flat: NDArray[Any] = np.empty(workers * entries, dtype)
        self._chunks: dict[int, NDArray[Any]] = {}

    def buffer(self, offset: int, base: int, entries: int) -> NDArray[Any]:
        """A part of the room, as (N, entries)."""
        return _part(self._flat, self._workers, offset, entries)

    def keep(self, offset: int, chunk: NDArray[Any]) -> None:
        """The chunk lies where it should."""
        self._chunks[offset] = chunk

    def copy_tile(self, worker: int, view: memoryview) -> None:
        """Put the worker's rows of all chunks together."""
        for offset, chunk in self._chunks.items():
            start, row = offset * chunk.dtype.itemsize, byte_view(chunk[worker])
            view[start : start + len(row)] = row

    def clear(self) -> None:
        """Forget the chunks."""
        self._chunks = {}

    def close(self) -> None:
        """Drop the array."""
        self._chunks = {}
        self._flat = np.empty(0, self._flat.dtype)


class SpoolStage(Stage):
    """N tiles in a spool file.

    `shared` (N x group,) is where a group of chunks is encoded; stages may share it, because only
    one group is encoded at a time.
    """

    def __init__(self, folder: str, workers: int, tile_bytes: int, shared: NDArray[Any]) -> None:
        self._workers = workers
        self._tile_bytes = tile_bytes
        self._shared = shared
        self._file = SpoolFile(folder, workers * tile_bytes)

    def buffer(self, offset: int, base: int, entries: int) -> NDArray[Any]:
        """A part of the shared array, as (N, entries)."""
        return _part(self._shared, self._workers, offset - base, entries)

    def keep(self, offset: int, chunk: NDArray[Any]) -> None:
        """Write every worker's part of the chunk at its place."""
        start = offset * chunk.dtype.itemsize
        for worker in range(self._workers):
            self._file.write(byte_view(chunk[worker]), worker * self._tile_bytes + start)

    def copy_tile(self, worker: int, view: memoryview) -> None:
        """Read the worker's tile back."""
        self._file.read_into(view, worker * self._tile_bytes)

    def clear(self) -> None:
        """The next tile is written over this one."""

    def close(self) -> None:
        """Close the file, which frees its room."""
        self._file.close()


def _part(flat: NDArray[Any], workers: int, offset: int, entries: int) -> NDArray[Any]:
    return flat[workers * offset : workers * (offset + entries)].reshape(workers, entries)
