"""A coded matrix on virtual time, with which the training code that runs on AWS computes.

`SimulatedMatrix.multiply` does what `CodedMatrix.multiply` does: real numbers, real codes and real
estimates, while delays are drawn from a model and seconds and dollars are counted, not spent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coordinator import events
from coordinator.cost import Usage, cost
from coordinator.prices import Prices, load_prices
from coordinator.until import parse_until
from polarcodes.delays import DelayModel
from polarcodes.estimators import estimate_product, expected_error
from polarcodes.schedules import Schedule
from polarlambda.result import Result
from polarlambda.simulation.iterations_schemes import Scheme, Times, Timing

__all__ = ["Clock", "SimulatedMatrix"]

DRAWN = 64  # rounds at a time
KEPT = 64  # exact products, to refer to
MB_PER_GB = 1024
ESTIMATORS = {"best": "best", "paper": "sketch"}


class Clock:
    """Virtual seconds."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        """Now."""
        return self.seconds


@dataclass(frozen=True)
class _Round:
    """One product: when messages come (N, messages), in which order, when all of it is known."""

    times: Times
    decisive: float

    @property
    def order(self) -> NDArray[np.intp]:
        """Messages by time, as flat indices worker * messages + message."""
        return np.argsort(self.times.reshape(-1), kind="stable")

    def sorted(self) -> Times:
        """Their times."""
        return np.sort(self.times.reshape(-1))


class SimulatedMatrix:
    """A (n, d) shared out by a scheme, under a delay model.

    delays : extra seconds of each worker in each product, independent of what they did before (as
    measured); memory_mb : of the worker function; clock : is advanced by every product. Randomness
    is `seed`. Nothing is written anywhere.
    """

    def __init__(
        self,
        A: NDArray[np.float64],
        scheme: Scheme,
        delays: DelayModel,
        *,
        timing: Timing | None = None,
        clock: Clock | None = None,
        memory_mb: int = 1769,
        prices: Prices | None = None,
        seed: int = 0,
    ) -> None:
        self.A, self.scheme, self.delays = A, scheme, delays
        self.timing = timing or Timing()
        self.clock = clock or Clock()
        self.prices = prices or load_prices()
        self.gigabytes = memory_mb / MB_PER_GB
        self._rng = np.random.default_rng(seed)
        self._waiting: list[_Round] = []
        self._exact: dict[str, tuple[NDArray[Any], NDArray[Any]]] = {}  # run: x, A x
        self._products = 0

    @property
    def code(self) -> Any:
        """The erasure code of the scheme."""
        return self.scheme.code

    def multiply(
        self,
        x: Any,
        *,
        until: str = "exact",
        deadline: float | None = None,
        estimator: str = "best",
        reference: str | Result | None = None,
        on_event: Callable[[events.Event], None] | None = None,
    ) -> Result:
        """See `CodedMatrix.multiply`; until "exact", "error=X" or "tasks=X".

        error=X stops at the first number of answers whose predicted error is X relative to A x;
        the coordinator estimates the norms that this takes, the simulation knows them. A reference
        is one of the latest exact products. Raises ValueError for what is not simulated.
        """
        del deadline
        round_, asked = self._round(), parse_until(until)
        x = np.asarray(x, np.float64)
        product = self.A @ x
        run = f"simulated{self._products}"
        self._products += 1
        value, exact, error, missing = product, True, 0.0, ()
        end, arrived = round_.decisive, int((round_.sorted() <= round_.decisive).sum())
        if asked.kind == "tasks" and asked.bound is not None and asked.bound < 1:
            end, value, missing = self._partial(round_, product, 1 - asked.bound)
            exact = not missing
            arrived = int((round_.sorted() <= end).sum())
        elif asked.kind == "error" and asked.bound is not None:
            base, change = self._change(x, product, reference)
            m = self._enough(asked.bound, change, product, estimator)
            if m < len(round_.order) and round_.sorted()[m - 1] < end:
                end, arrived, exact = float(round_.sorted()[m - 1]), m, False
                found, error = self._estimate(round_, change, m, estimator)
                value = base + found
                size = float(np.linalg.norm(value if reference is not None else product))
                error = error * float(np.linalg.norm(change)) / size if size else 0.0
        elif asked.kind not in ("exact", "tasks"):
            raise ValueError(f"until={until!r} is not simulated")
        if exact:
            self._exact[run] = x.copy(), product
            if len(self._exact) > KEPT:
                del self._exact[next(iter(self._exact))]
        if on_event is not None:
            self._tell(on_event, run, round_, arrived)
        seconds = end + self.timing.collect
        self.clock.seconds += seconds
        return Result(
            run=run,
            state="exact" if exact else "estimated",
            value=value,
            exact=exact,
            verified=exact,
            met=True,
            arrivals=arrived,
            workers=self.scheme.workers,
            subtasks=self.scheme.messages,
            error=error,
            error_upper=None,
            seconds=seconds,
            cost=self._dollars(round_, end, arrived),
            bill=None,
            message="",
            missing_rows=missing,
        )

    def _round(self) -> _Round:
        if not self._waiting:
            excess = self.delays.sample(self._rng, DRAWN, self.scheme.workers)
            times = self.scheme.arrivals(excess, self.timing)
            decisive = self.scheme.decisive(excess, self.timing, self._rng)
            self._waiting = [_Round(t, float(d)) for t, d in zip(times, decisive, strict=True)]
        return self._waiting.pop()

    def _partial(
        self, round_: _Round, product: NDArray[Any], missing: float
    ) -> tuple[float, NDArray[Any], tuple[tuple[int, int], ...]]:
        """(end, value, missing rows) once all but the share `missing` of the tasks are known."""
        schedule = self.scheme.schedule or _plain(self.scheme)
        recovery, per = schedule.recovery(), schedule.messages_per_worker
        rows = -(-len(product) // schedule.tasks)
        for index in round_.order:
            worker, message = divmod(int(index), self.scheme.messages)
            if per == 1 and message + 1 < self.scheme.messages:
                continue  # all of its tasks in one message, with the last
            recovery.add(worker, message if per > 1 else 0)
            if recovery.complete(tolerance=missing):
                lost = np.flatnonzero(~recovery.recovered_mask)
                spans = tuple((i * rows, min((i + 1) * rows, len(product))) for i in lost.tolist())
                value = product.copy()
                for first, last in spans:
                    value[first:last] = 0.0
                return float(round_.times.reshape(-1)[index]), value, spans
        raise ValueError(f"{self.scheme.name} never recovers {1 - missing:.0%} of the tasks")

    def _change(
        self, x: NDArray[Any], product: NDArray[Any], reference: str | Result | None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """(A x_ref, A (x - x_ref)); zero and A x without a reference."""
        if reference is None:
            return np.zeros_like(product), product
        name = reference.run if isinstance(reference, Result) else reference
        if name not in self._exact:
            raise ValueError(f"{name} is none of the last {KEPT} exact products")
        there, known = self._exact[name]
        return known, self.A @ (x - there)

    def _enough(
        self, bound: float, change: NDArray[Any], product: NDArray[Any], estimator: str
    ) -> int:
        """The number of answers whose predicted error is within the bound, N of them at most."""
        if self.code is None:
            raise ValueError(f"{self.scheme.name} has no estimate")
        size = float(np.linalg.norm(product))
        ratio = float(np.linalg.norm(change)) / size if size else 0.0
        method = ESTIMATORS[estimator]
        for m in range(1, self.code.workers):
            if expected_error(self.code, m, method) * ratio <= bound:
                return m
        return int(self.code.workers)

    def _estimate(
        self, round_: _Round, change: NDArray[Any], m: int, estimator: str
    ) -> tuple[NDArray[Any], float]:
        """(estimate of the change, its predicted relative error) from the first m answers."""
        s = self.code.data_blocks
        b = -(-len(change) // s)
        padded = np.zeros((s * b, *change.shape[1:]))
        padded[: len(change)] = change
        U = padded.reshape(s, -1)
        places = self.scheme.places
        flat = np.arange(self.code.workers) if places is None else places.reshape(-1)
        S = np.sort(flat[round_.order[:m]])
        found = estimate_product(self.code, S, self.code.encode(U)[S], method=ESTIMATORS[estimator])
        return found.value.reshape(padded.shape)[: len(change)], found.relative_error

    def _tell(
        self, on_event: Callable[[events.Event], None], run: str, round_: _Round, arrived: int
    ) -> None:
        for m, at in enumerate(round_.sorted()[:arrived].tolist(), 1):
            told = events.Arrived(
                t=at,
                run=run,
                arrivals=m,
                workers=self.scheme.workers,
                subtasks=self.scheme.messages,
                error=math.inf,
                worker=0,
            )
            on_event(told)

    def _dollars(self, round_: _Round, end: float, arrived: int) -> float:
        """Workers are billed until they are done, or until their first look for the stop marker
        after the end: every `look` seconds, and between two messages. (Extra time before the first
        task is billed like work: on Lambda part of it is start-up, which is not.)"""
        N, look = self.scheme.workers, self.timing.look
        done = round_.times[:, -1]
        stopped = end + look / 2 if self.scheme.messages == 1 else end + look / 4
        seconds = float(np.minimum(done, stopped).sum())
        messages = int((round_.times <= stopped).sum())
        usage = Usage(
            puts=1 + messages + 4,  # x, answers, run.json, status, result
            gets=2 * N + arrived,  # block and x; answers
            lists=messages + max(1, int(end / 0.5)),
            invokes=N,
            worker_gb_seconds=seconds * self.gigabytes,
        )
        return cost(usage, self.prices).total


def _plain(scheme: Scheme) -> Schedule:
    """No coding as a schedule: worker k does task k."""
    if scheme.code is None or scheme.code.name != "uncoded":
        raise ValueError(f"{scheme.name} gives all of a product, or nothing: use until=exact")
    return Schedule("uncoded", np.eye(scheme.workers)[None])
