"""What encode functions do for one matrix, counted before anything is read."""

from __future__ import annotations

from dataclasses import dataclass

from blockstore.tiling import Tiling

__all__ = ["EncodeWork", "PassWork"]


@dataclass(frozen=True)
class PassWork:
    """One pass over the matrix, by `calls` of the function.

    units, share : leaves looked at or tiles written, in all and by the largest call; gets :
    requests that read, HEADs included, of all calls; opening : those among them that each call
    makes before its first unit; read, written : bytes of all calls.
    """

    calls: int
    units: int
    share: int
    gets: int
    opening: int
    read: int
    puts: int = 0
    written: int = 0

    @property
    def gets_of_unit(self) -> float:
        """Requests for one leaf or tile."""
        return (self.gets - self.opening * self.calls) / self.units


@dataclass(frozen=True, kw_only=True)
class EncodeWork:
    """Both passes in functions of `memory` and `disk` bytes, at most `concurrency` at a time.

    tiling, tile_bytes, blocks : what is written, the largest object without its header, N;
    readers, uploaders, encoders : threads of a function; stages : tiles of all blocks that it holds
    at a time; spool_bytes : of its disk that these take, 0 if they are in memory; peak_bytes :
    predicted memory; full_memory : bytes with which tiles would be as large as they get, without
    the disk; gets, puts, lists : requests of the process that encodes and calls.
    """

    memory: int
    disk: int
    concurrency: int
    tiling: Tiling
    tile_bytes: int
    blocks: int
    readers: int
    uploaders: int
    encoders: int
    stages: int
    spool_bytes: int
    peak_bytes: int
    full_memory: int
    scan: PassWork
    write: PassWork
    gets: int
    puts: int
    lists: int

    @property
    def calls(self) -> int:
        """Invocations of both passes."""
        return self.scan.calls + self.write.calls
