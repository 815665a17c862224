"""Where the coded tiles of all workers wait between the transform and their upload."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blockstore.arrays import byte_view
from encoder.spool import SpoolFile


class Stage(ABC):
    """Room for one tile of every worker."""

    @abstractmethod
    def buffer(self, entries: int) -> NDArray[Any]:
        """A C-contiguous (N, entries) array to encode a chunk in; contents arbitrary."""

    @abstractmethod
    def keep(self, chunk: NDArray[Any], offset: int) -> None:
        """Keep an encoded chunk, which begins `offset` entries into the tile."""

    @abstractmethod
    def copy_tile(self, worker: int, view: memoryview) -> None:
        """Copy the first `len(view)` bytes of a worker's tile to `view`."""

    @abstractmethod
    def close(self) -> None:
        """Give the room back."""


class MemoryStage(Stage):
    """N tiles in memory; a tile is encoded in one chunk, in place."""

    def __init__(self, workers: int, entries: int, dtype: np.dtype[Any]) -> None:
        self._workers = workers
        self._flat: NDArray[Any] = np.empty(workers * entries, dtype)
        self._tile = self.buffer(entries)

    def buffer(self, entries: int) -> NDArray[Any]:
        """The room itself, as (N, entries)."""
        self._tile = self._flat[: self._workers * entries].reshape(self._workers, entries)
        return self._tile

    def keep(self, chunk: NDArray[Any], offset: int) -> None:
        """The chunk is the tile, and lies where it should."""
        if offset:
            raise ValueError(f"a tile in memory is one chunk, got one at offset {offset}")

    def copy_tile(self, worker: int, view: memoryview) -> None:
        """Copy the worker's row."""
        view[:] = byte_view(self._tile[worker])

    def close(self) -> None:
        """Drop the array."""
        self._flat = self._tile = np.empty(0, self._flat.dtype)


class SpoolStage(Stage):
    """N tiles in a spool file.

    `shared` is the (N x chunk) array in which chunks are encoded; stages may share it, because
    only one tile is encoded at a time.
    """

    def __init__(self, folder: str, workers: int, entries: int, shared: NDArray[Any]) -> None:
        self._workers = workers
        self._tile_bytes = entries * shared.dtype.itemsize
        self._shared = shared
        self._file = SpoolFile(folder, workers * self._tile_bytes)

    def buffer(self, entries: int) -> NDArray[Any]:
        """The shared array, as (N, entries)."""
        return self._shared[: self._workers * entries].reshape(self._workers, entries)

    def keep(self, chunk: NDArray[Any], offset: int) -> None:
        """Write every worker's part of the chunk at its place."""
        start = offset * chunk.dtype.itemsize
        for worker in range(self._workers):
            self._file.write(byte_view(chunk[worker]), worker * self._tile_bytes + start)

    def copy_tile(self, worker: int, view: memoryview) -> None:
        """Read the worker's tile back."""
        self._file.read_into(view, worker * self._tile_bytes)

    def close(self) -> None:
        """Close the file, which frees its room."""
        self._file.close()
