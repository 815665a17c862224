"""Schemes that share one product out to workers, and when each of their messages is there.

A worker's task is its share of W without coding, `Timing.task` seconds; a scheme's messages take
`load` tasks each, so that coded blocks, which are larger, are charged. Delays come first and stay
what they are, whatever the load: they are start-up and network (docs/cost.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from polarcodes import ErasureCode, make_code
from polarcodes.delays import DelayModel
from polarcodes.schedules import Completion, Schedule, ScheduleCode, completion, make_schedule
from polarcodes.thresholds import decoding_times

__all__ = ["SCHEDULES", "Scheme", "Timing", "coded", "relaunched", "scheduled", "uncoded"]

SCHEDULES = ("uc-mmc", "mcc", "gradient", "cpgc", "rcsc", "searched")
RELAUNCHED = 0.05  # of the workers

Times = NDArray[np.float64]


@dataclass(frozen=True)
class Timing:
    """Seconds that do not depend on the delays.

    task : of a worker's uncoded share, N-th of the product; announce : PUT of x, invocations, GET
    of x by the workers, before any task; message : a worker's look for the stop marker and the PUT
    of an answer, for each message; collect : LIST, GET of the decisive answer, decoding; look :
    between two looks for the stop marker within a task.
    """

    task: float = 1.5
    announce: float = 0.25
    message: float = 0.2
    collect: float = 0.25
    look: float = 3.0


@dataclass(frozen=True)
class Scheme:
    """How one product is shared out to N workers with `messages` messages of `load` tasks each.

    code : over the N x messages blocks, None where only all of a product can be had (gradient
    coding, re-launching); schedule : who computes what, None for an erasure code; places : the
    place in the code of each worker's messages, (N, messages).
    """

    name: str
    workers: int
    load: float
    messages: int = 1
    code: ErasureCode | None = None
    schedule: Schedule | None = None
    places: NDArray[np.intp] | None = None

    @property
    def work(self) -> float:
        """What a worker that is not stopped does, in uncoded shares: what is charged."""
        return self.load * self.messages

    def arrivals(self, excess: Times, timing: Timing) -> Times:
        """(rounds, N) delays -> (rounds, N, messages) seconds at which each message is there."""
        steps = self._one(timing) * np.arange(1, self.messages + 1)
        return np.asarray(timing.announce + excess[:, :, None] + steps)

    def decisive(self, excess: Times, timing: Timing, rng: np.random.Generator) -> Times:
        """(rounds,) seconds after which the whole product is known."""
        times = self.arrivals(excess, timing)
        if self.name == "re-launching":
            return _relaunch(times[:, :, 0], timing, rng)
        if self.schedule is not None:
            return self.completion(excess, timing).time()
        if self.code is None or self.code.name == "uncoded":
            return np.asarray(times.max(axis=(1, 2)))
        return decoding_times(self.code, self.by_place(times), quick=True)

    def completion(self, excess: Times, timing: Timing) -> Completion:
        """When at least q tasks of a schedule are known, for every q (of the base schedule)."""
        if self.schedule is None:
            raise ValueError(f"{self.name} is no schedule: all of it is known, or nothing")
        wait = excess + timing.announce
        return completion(self.schedule, np.full(excess.shape, self._one(timing)), wait=wait)

    def _one(self, timing: Timing) -> float:
        """Seconds of one task with its share of a message: schedules may send once, at the end."""
        sent = 1.0
        if self.schedule is not None:
            sent = self.schedule.messages_per_worker / self.schedule.load
        return self.load * timing.task + sent * timing.message

    def by_place(self, times: Times) -> Times:
        """(rounds, N, messages) -> (rounds, N x messages) in the order of the code's places."""
        flat = times.reshape(len(times), -1)
        if self.places is None:
            return flat
        ordered = np.empty_like(flat)
        ordered[:, self.places.reshape(-1)] = flat
        return ordered


def uncoded(workers: int) -> Scheme:
    """A plain share for each worker; everybody is needed."""
    code = make_code("uncoded", workers=workers, data_blocks=workers)
    return Scheme("no coding", workers, 1.0, code=code)


def relaunched(workers: int) -> Scheme:
    """No coding; the slowest 5 %, one at least, are started once more when the others are done."""
    return Scheme("re-launching", workers, 1.0)


def coded(
    name: str,
    workers: int,
    *,
    data_blocks: int,
    messages: int = 1,
    code: str = "hadamard",
    seed: int = 0,
) -> Scheme:
    """An erasure code over N x messages blocks, `data_blocks` x messages of them data, at random
    places where a worker has several."""
    blocks = workers * messages
    made = make_code(code, workers=blocks, data_blocks=data_blocks * messages, seed=seed)
    places = None
    if messages > 1:
        places = np.random.default_rng(seed).permutation(blocks).reshape(workers, messages)
    load = workers / (data_blocks * messages)
    return Scheme(name, workers, load, messages, code=made, places=places)


def scheduled(name: str, workers: int, load: int, tolerance: float = 0.0) -> Scheme:
    """A schedule of `load` tasks for each of K workers, K tasks in all."""
    options = {"tolerance": tolerance} if name == "searched" else {}
    schedule = make_schedule(name, workers, load, **options)
    code = None if schedule.sending == "sum" else ScheduleCode(schedule)
    return Scheme(name, workers, 1.0, load, code=code, schedule=schedule)


def best_data_blocks(
    scheme: Scheme, delays: DelayModel, timing: Timing, *, rounds: int = 400, seed: int = 1
) -> Scheme:
    """The same code with the number of data blocks that has the least mean time, from N / 2 on."""
    if scheme.code is None or scheme.schedule is not None:
        raise ValueError(f"{scheme.name} has no data blocks to choose")
    N, r = scheme.workers, scheme.messages
    excess = delays.sample(np.random.default_rng(seed), rounds, N)
    best: tuple[float, Scheme] | None = None
    for s in range(N // 2, N + (r > 1)):
        made = coded(
            scheme.name, N, data_blocks=s, messages=r, code=scheme.code.name, seed=scheme.code.seed
        )
        mean = float(made.decisive(excess, timing, np.random.default_rng(seed)).mean())
        if best is None or mean < best[0]:
            best = mean, replace(made, name=scheme.name)
    if best is None:
        raise ValueError(f"{N} workers leave no choice of data blocks")
    return best[1]


def _relaunch(times: Times, timing: Timing, rng: np.random.Generator) -> Times:
    """Fresh workers for those that are late when the others are done; who is first counts.

    Their delays are drawn from those of all workers of all rounds.
    """
    late = max(1, round(RELAUNCHED * times.shape[1]))
    on_time = times.shape[1] - late
    moment = np.partition(times, on_time - 1, axis=1)[:, on_time - 1 : on_time]
    again = moment + rng.choice(times.ravel(), times.shape)
    return np.asarray(np.minimum(times, again).max(axis=1))
