"""Sends workers off and writes down that it did."""

from __future__ import annotations

from dataclasses import replace

from blockstore.tasks import WorkerTask
from coordinator import events
from coordinator.context import RunContext
from coordinator.journal import Dispatch
from coordinator.ports import Invoker
from coordinator.signals import Failed, Invoked, Signal

__all__ = ["Dispatcher"]


class Dispatcher:
    """Turns the machine's Invoke into invocations, and their reports into signals."""

    def __init__(self, context: RunContext, invoker: Invoker) -> None:
        self._context = context
        self._invoker = invoker
        self._open: dict[int, tuple[Dispatch, set[int]]] = {}  # by attempt: who is not heard of

    def send(self, workers: tuple[int, ...], attempt: int) -> None:
        """Write the dispatch down, then begin it."""
        context = self._context
        again = bool(context.journal.dispatches)
        dispatch = Dispatch(attempt, workers, context.clock.now())
        self._open[attempt] = dispatch, set(workers)
        context.journal = context.journal.dispatching(dispatch)
        context.journal.save(context.store)
        spec = context.journal.spec
        self._invoker.submit(
            [
                WorkerTask.of(
                    context.manifest,
                    run=spec.run,
                    attempt=attempt,
                    worker=worker,
                    x_shape=spec.x_shape,
                    x_dtype=spec.x_dtype,
                    x_digest=spec.x_digest,
                )
                for worker in workers
            ]
        )
        if again:
            context.emit(events.Reinvoked, missing=workers, attempt=attempt)
        else:
            context.emit(events.Dispatched, count=len(workers), attempt=attempt)

    def hear(self) -> list[Signal]:
        """What has become of the invocations since the last call."""
        now = self._context.clock.now()
        accepted: dict[int, list[int]] = {}
        failed: list[Signal] = []
        for report in self._invoker.reports():
            dispatch, silent = self._open[report.attempt]
            silent.discard(report.worker)
            if report.kind:
                failed.append(
                    Failed(
                        now,
                        report.worker,
                        report.attempt,
                        report.kind,
                        report.message,
                        report.fatal,
                    )
                )
            else:
                accepted.setdefault(report.attempt, []).append(report.worker)
            if not silent:
                self._complete(replace(dispatch, at=now, complete=True))
        invoked = [Invoked(now, tuple(workers), attempt) for attempt, workers in accepted.items()]
        return [*invoked, *failed]

    def close(self) -> None:
        """Drop the invocations that have not begun."""
        self._invoker.close()

    def _complete(self, dispatch: Dispatch) -> None:
        context = self._context
        began = self._open.pop(dispatch.attempt)[0].at
        context.spend("dispatch", dispatch.at - began)
        context.journal = context.journal.dispatching(dispatch)
        if context.journal.spec.decisive is None:
            context.journal.save(context.store)
