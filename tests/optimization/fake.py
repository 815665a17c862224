"""Evaluations in this process, against a bucket in memory: everything else is the product's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from blockstore.evaluations import EvaluationTask
from blockstore.rounds import RoundStore
from coordinator.ports import InvokeReport
from functions.objective.evaluate import evaluate, failure
from polarlambda.optimization.iteration import Place
from tests.memory_bucket import MemoryBucket


@dataclass
class FakeClock:
    at: float = 1000.0

    def now(self) -> float:
        return self.at

    def sleep(self, seconds: float) -> None:
        self.at += max(seconds, 0.001)


@dataclass
class Workers:
    """Evaluates at once, but for workers that are dead (no word) in a round."""

    bucket: Any
    objective: Callable[..., Any]
    dead: Callable[[int, int], Iterable[int]] = lambda round_, workers: ()
    refused: InvokeReport | None = None
    done: list[EvaluationTask] = field(default_factory=list)
    busy: bool = False  # its requests are not the coordinator's

    def __call__(self) -> Workers:
        self._reports: list[InvokeReport] = []
        return self

    def submit(self, tasks: Sequence[EvaluationTask]) -> None:
        for task in tasks:
            if self.refused is not None:
                report = self.refused
                self._reports.append(
                    InvokeReport(task.worker, 1, report.kind, report.message, report.fatal)
                )
                continue
            self._reports.append(InvokeReport(task.worker, task.attempt))
            if task.worker in set(self.dead(task.round, task.workers)):
                continue
            self.done.append(task)
            self.busy = True
            self._evaluate(task)
            self.busy = False

    def _evaluate(self, task: EvaluationTask) -> None:
        store = RoundStore(self.bucket, task.optimization, task.round)
        try:
            store.put_answer(evaluate(store, task, self.objective))
        except Exception as exc:  # noqa: BLE001 - as the handler does
            store.put_failure(failure(task, exc))

    def reports(self) -> list[InvokeReport]:
        found, self._reports = self._reports, []
        return found

    def close(self) -> None:
        pass


def make_place(objective: Callable[..., Any], **options: Any) -> tuple[Place, Workers]:
    bucket = options.pop("bucket", None) or MemoryBucket()
    workers = Workers(bucket, objective, **options)
    place = Place(bucket, workers, FakeClock(), 30.0, 1024, lambda usage: usage.invokes * 1e-4)
    return place, workers
