"""Lambda as a fleet sees it: environments that start at a rate, a queue that backs off, workers."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from blockstore import documents, keys
from blockstore.answers import AnswerMetadata
from blockstore.arrays import encode_array
from blockstore.records import ErrorRecord
from blockstore.stops import STOP_INTERVAL, is_fresh
from blockstore.tasks import WorkerTask
from coordinator.task_time import BlockWork
from polarlambda.simulation.fleet_limits import FleetLimits, TokenBucket
from polarlambda.simulation.fleet_store import FleetStore
from polarlambda.simulation.fleet_world import World

__all__ = ["FleetLambda", "Work"]


@dataclass
class Work:
    """What the workers do: answers (N, rows, ...) that they would give, `delays` (N,) seconds
    beyond their task, `silent` those that die each time; `trusting`: they begin without a look for
    the stop marker right after they were sent."""

    block: BlockWork
    answers: NDArray[np.generic]
    delays: NDArray[np.float64]
    memory_mb: int
    timeout: float
    scale: float
    silent: frozenset[int] = frozenset()
    trusting: bool = True


@dataclass
class Counts:
    """What happened: events that found no environment, environments started, workers that began,
    answered, failed and said so, found the stop marker, died; `busy_seconds`: billed, of all."""

    queued: int = 0
    dropped: int = 0
    cold: int = 0
    begun: int = 0
    answered: int = 0
    failed: int = 0
    stopped: int = 0
    died: int = 0
    busy_seconds: float = 0.0
    most_running: int = 0
    begins: list[float] = field(default_factory=list)


class FleetLambda:
    """The worker function: its asynchronous queue, its environments, its code's requests."""

    def __init__(
        self, world: World, limits: FleetLimits, store: FleetStore, work: Work, seed: int
    ) -> None:
        self.counts = Counts()
        self._world, self._limits, self._store, self._work = world, limits, store, work
        self._random = random.Random(f"lambda/{seed}")
        platform = limits.platform
        self._idle = platform.warm_environments
        self._running = 0
        self._ramp = TokenBucket(platform.ramp_rate, platform.ramp_burst, world.time)

    def invoke(self, task: WorkerTask) -> None:
        """Accept an event, as Lambda always does; it begins when there is an environment."""
        self._begin(replace(task, sent=self._world.time), self._world.time, 0)

    def _begin(self, task: WorkerTask, accepted: float, tries: int) -> None:
        world, limits = self._world, self._limits
        room = self._running < limits.platform.concurrency
        cold = room and self._idle == 0
        if room and (not cold or self._ramp.take(world.time)):
            self._running += 1
            self.counts.most_running = max(self.counts.most_running, self._running)
            self._idle -= 0 if cold else 1
            self.counts.cold += cold
            _Worker(self, task, world.time + (limits.platform.cold_seconds if cold else 0.0))
            return
        self.counts.queued += 1
        longest = min(limits.queue_longest_pause, limits.queue_first_pause * 2.0**tries)
        later = world.time + longest * (0.5 + self._random.random())
        if later - accepted > limits.event_age:
            self.counts.dropped += 1
            return
        world.at(later, lambda: self._begin(task, accepted, tries + 1))

    def ended(self, seconds: float, *, alive: bool = True) -> None:
        """A worker has ended; its environment stays warm unless it died with it."""
        self._running -= 1
        self._idle += alive
        self.counts.busy_seconds += seconds


class _Worker:
    """One invocation: delay, a look for the stop marker if it is late, x, tiles, product,
    answer."""

    def __init__(self, function: FleetLambda, task: WorkerTask, at: float) -> None:
        self._function, self._task, self._began = function, task, at
        self._world, self._store = function._world, function._store
        self._work, self._looked = function._work, at
        self._tiles = self._looks = 0
        function.counts.begun += 1
        function.counts.begins.append(at)
        work = self._work
        if task.worker in work.silent:
            self._world.at(at + work.timeout, self._die)
            return
        self._world.at(at + float(work.delays[task.worker]), self._start)

    def _late(self) -> bool:
        return self._world.time - self._began > self._work.timeout

    def _start(self) -> None:
        self._looked = self._world.time
        if self._work.trusting and is_fresh(self._task.sent, self._world.time):
            self._go_on()
        else:
            self._look()

    def _look(self) -> None:
        self._looked = self._world.time
        self._looks += 1
        prefix = keys.stop_prefix(self._task.run)
        self._store.ask("list", prefix, self._looked_for, self._lost)

    def _looked_for(self) -> None:
        if self._store.holds(keys.stop_key(self._task.run, self._task.attempt)):
            self._end("stopped")
        else:
            self._go_on()

    def _go_on(self) -> None:
        if self._tiles == 0:
            self._store.ask("get", keys.x_key(self._task.run), self._read_x, self._lost)
        else:
            self._read_tile()

    def _read_x(self) -> None:
        platform = self._function._limits.platform
        seconds = self._work.block.x_bytes / platform.s3_read_rate
        self._world.at(self._world.time + seconds, self._read_tile)

    def _read_tile(self) -> None:
        if self._late():
            self._die()
            return
        key = self._task.tile_key(self._tiles)
        self._store.ask("get", key, self._multiply, self._lost)

    def _multiply(self) -> None:
        """The product of the tile before goes on while this one comes."""
        block, platform = self._work.block, self._function._limits.platform
        tiles = max(1, block.objects)
        vcpus = platform.vcpus(self._work.memory_mb)
        converted = block.rows * block.columns * block.compute_itemsize
        stream = (block.block_bytes + converted) / (platform.stream_rate * vcpus)
        product = 2.0 * block.rows * block.columns * block.k / (platform.product_rate * vcpus)
        multiply = max(stream, product) / tiles
        read = block.block_bytes / tiles / platform.s3_read_rate
        self._tiles += 1
        last = self._tiles == tiles
        seconds = read + multiply if last else max(read, multiply)
        if not last:  # two tiles are asked for at a time: half of the wait for the next is over
            seconds = max(0.0, seconds - platform.s3_request_seconds / 2)
        self._world.at(self._world.time + seconds, self._write if last else self._next)

    def _next(self) -> None:
        if self._world.time - self._looked > STOP_INTERVAL:
            self._look()
        else:
            self._read_tile()

    def _write(self) -> None:
        key = keys.result_key(self._task.run, self._task.worker)
        self._store.ask("put", key, lambda: self._answer(key), self._lost)

    def _answer(self, key: str) -> None:
        if self._late():
            self._die()
            return
        work, task = self._work, self._task
        metadata = AnswerMetadata(
            x_digest=task.x_digest,
            encoding=task.encoding,
            attempt=task.attempt,
            seconds_total=self._world.time - self._began,
            scale=work.scale,
            looks=self._looks,
        )
        body = encode_array(work.answers[task.worker])
        self._store.put_late(key, body, metadata.to_metadata())
        self._end("answered")

    def _lost(self) -> None:
        """S3 said SlowDown to every attempt: the worker says so, in a record, and ends."""
        task = self._task
        record = ErrorRecord(
            worker=task.worker,
            attempt=task.attempt,
            type="StoreUnavailable",
            message="S3 said SlowDown to every attempt",
            where="product",
            fatal=False,
        )
        key = keys.error_key(task.run, task.worker, task.attempt)
        body = documents.dump(record.to_json())

        def told() -> None:
            self._store.put_late(key, body, {})
            self._end("failed")

        self._store.ask("put", key, told, self._die)

    def _end(self, how: str) -> None:
        counts = self._function.counts
        setattr(counts, how, getattr(counts, how) + 1)
        self._function.ended(self._world.time - self._began)

    def _die(self) -> None:
        self._function.counts.died += 1
        seconds = min(self._world.time - self._began, self._work.timeout)
        self._function.ended(seconds, alive=False)
