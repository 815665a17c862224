"""Starting slow workers once more, and coding: alone, together, and neither, on the same delays.

The run machine of `coordinator` decides in virtual time, N = 64 workers on a task of 1.5 s. The
code is the default one, any s = 56 answers decode; its tasks are N / s times longer. A second
attempt meets the delay of another worker of the same round. Worker-seconds count every attempt up
to its end or that of the run, over those of the undelayed uncoded run.
"""

from __future__ import annotations

import argparse
import heapq
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks import replay
from benchmarks.harness import WrongResult, save
from coordinator.machine import step
from coordinator.relaunch import next_relaunch, parse_relaunch
from coordinator.signals import Arrived, Invoke, Invoked, Signal, Started, StoreDecisive, Tick
from coordinator.state import Rules, initial_state
from coordinator.until import parse_until

WORKERS, DATA_BLOCKS = 64, 56
POLICIES = (None, "share=0.75", "share=0.9", "times=2", "times=3", "share=0.9,times=2")
PATIENCE = 900.0


@dataclass(frozen=True)
class AnyOf:
    """A code that decodes from any ``data_blocks`` answers."""

    workers: int
    data_blocks: int

    def decodable(self, S: Iterable[int]) -> bool:
        return len(set(S)) >= self.data_blocks

    def predicted_error(self, m: int) -> float:
        return 0.0 if m == self.workers else 1.0

    def estimate_error(self, S: Iterable[int]) -> float:
        return self.predicted_error(len(set(S)))


@dataclass(frozen=True)
class Row:
    """Seconds until the product is decodable, and what was paid, for one way to run it."""

    delays: str
    code: str
    relaunch: str
    rounds: int
    mean: float
    p95: float
    p99: float
    invocations: float
    worker_seconds: float


def one_run(
    code: AnyOf, first: np.ndarray, again: np.ndarray, policy: str | None
) -> tuple[float, int, float]:
    """(seconds, invocations, worker-seconds) with attempts that take ``first`` and ``again``."""
    rules = Rules(parse_until("exact"), PATIENCE, relaunch=parse_relaunch(policy))
    state = initial_state(code, rules, opened=0.0)
    attempts: list[tuple[float, float]] = []  # begin, end
    coming: list[tuple[float, int]] = []
    queue: list[Signal] = [Started(0.0)]
    now = 0.0
    while True:
        while queue:
            state, actions = step(state, queue.pop(0))
            for action in actions:
                if isinstance(action, StoreDecisive):
                    paid = sum(min(end, now) - begin for begin, end in attempts)
                    return now, len(attempts), paid
                if isinstance(action, Invoke):
                    times = again if action.relaunch else first
                    for worker in action.workers:
                        attempts.append((now, now + float(times[worker])))
                        heapq.heappush(coming, (now + float(times[worker]), worker))
                    queue.append(Invoked(now, action.workers, action.attempt))
        moment = next_relaunch(state)
        if not coming:
            raise WrongResult("the run waits for nobody")
        if moment is not None and now <= moment < coming[0][0]:
            now = moment
            queue.append(Tick(now))
        else:
            now, worker = heapq.heappop(coming)
            queue.append(Arrived(now, (worker,)))
            if policy is not None:
                queue.append(Tick(now))


def measure(name: str, times: replay.Times) -> list[Row]:
    """All ways to run, on the same rounds of task times (rounds, N)."""
    rng = np.random.default_rng(0)
    others = np.stack([row[rng.integers(WORKERS, size=WORKERS)] for row in times])
    fastest = times.min(axis=1, keepdims=True)
    rows = []
    for label, code in (
        ("uncoded", AnyOf(WORKERS, WORKERS)),
        ("hadamard", AnyOf(WORKERS, DATA_BLOCKS)),
    ):
        load = WORKERS / code.data_blocks
        first, again = times + (load - 1) * fastest, others + (load - 1) * fastest
        for policy in POLICIES:
            found = np.array(
                [one_run(code, a, b, policy) for a, b in zip(first, again, strict=True)]
            )
            seconds, invocations, paid = found.T
            rows.append(
                Row(
                    name,
                    label,
                    policy or "-",
                    len(times),
                    float(seconds.mean()),
                    float(np.quantile(seconds, 0.95)),
                    float(np.quantile(seconds, 0.99)),
                    float(invocations.mean()),
                    float(paid.mean() / (WORKERS * fastest.mean())),
                )
            )
    return rows


def line(row: Row) -> str:
    """One row of the table."""
    return (
        f"{row.delays[:34]:34s} {row.code:9s} {row.relaunch:18s} {row.mean:7.2f} {row.p95:7.2f} "
        f"{row.p99:7.2f} {row.invocations:7.1f} {row.worker_seconds:7.2f}"
    )


def main() -> int:
    """Print the table and save it."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.relaunch",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    replay.add_options(parser)
    arguments = parser.parse_args()
    profiles = replay.modelled(4 if arguments.small else 300, WORKERS)
    if not arguments.small:
        rng = np.random.default_rng(1)
        for name, table in replay.measured(arguments.data).items():
            draws = [row[rng.permutation(row.size)[:WORKERS]] for row in table for _ in range(2)]
            profiles[name] = np.array(draws)
    print(
        f"{'delays':34s} {'code':9s} {'relaunch':18s} {'mean s':>7s} {'95 %':>7s} {'99 %':>7s} "
        f"{'invoked':>7s} {'paid':>7s}"
    )
    rows = []
    for name, times in profiles.items():
        for row in measure(name, times):
            rows.append(row)
            print(line(row), flush=True)
    print(f"written to {save('relaunch', {'rows': [asdict(row) for row in rows]})}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
