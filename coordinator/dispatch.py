"""Sends workers off and writes down that it did."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from blockstore.pair_tasks import task_of
from coordinator import events
from coordinator.context import RunContext
from coordinator.journal import Dispatch, Journal, write
from coordinator.ports import Invoker
from coordinator.signals import Failed, Invoked, Signal
from coordinator.window import Window

__all__ = ["Dispatcher"]


@dataclass
class _Sending:
    """A dispatch under way: who was accepted, and who was not heard of yet."""

    dispatch: Dispatch
    silent: set[int]
    accepted: set[int]


class Dispatcher:
    """Turns the machine's Invoke into invocations, and their reports into signals.

    save_after : seconds in which the run may be over before it is worth a note who was invoked; a
    run that is resumed without it invokes again.
    """

    def __init__(
        self,
        context: RunContext,
        invoker: Invoker,
        *,
        concurrency: int = 0,
        worker_timeout: float = 900.0,
        save_after: float = 0.0,
    ) -> None:
        self._context = context
        self._window = Window(invoker, concurrency, worker_timeout)
        self._save_after = save_after
        self._open: dict[int, _Sending] = {}  # by attempt
        self._unsaved: list[Dispatch] = []  # complete, and run.json does not say so yet

    def send(self, workers: tuple[int, ...], attempt: int, relaunch: bool = False) -> None:
        """Write the dispatch down, then begin it, in random order.

        Who is invoked last tends to answer last. If those were neighbours, the missing answers
        would be a burst, which one plain transform bears worse than any other pattern.
        """
        context = self._context
        again = bool(context.journal.dispatches)
        dispatch = Dispatch(attempt, workers, context.clock.now(), relaunch=relaunch)
        self._open[attempt] = _Sending(dispatch, set(workers), set())
        self.save(lambda now: now.dispatching(dispatch))
        spec = context.journal.spec
        order = list(workers)
        random.Random(f"{spec.run}/{attempt}").shuffle(order)
        self._window.submit(
            [
                task_of(
                    context.manifest,
                    spec,
                    attempt=attempt,
                    worker=worker,
                    todo=self._missing(worker),
                )
                for worker in order
            ],
            context.clock.now(),
        )
        if again:
            context.emit(events.Reinvoked, missing=workers, attempt=attempt, slow=relaunch)
        else:
            context.emit(events.Dispatched, count=len(workers), attempt=attempt)

    def _missing(self, worker: int) -> tuple[int, ...]:
        """Those of a worker's tasks whose answer is not here."""
        context = self._context
        places = context.manifest.shares.places_of(worker)
        return tuple(task for task, place in enumerate(places) if place not in context.answers)

    def hear(self) -> list[Signal]:
        """What has become of the invocations since the last call."""
        now = self._context.clock.now()
        invoked: dict[int, list[int]] = {}
        failed: list[Signal] = []
        for report in self._window.reports(now, self._ended()):
            worker, attempt = report.worker, report.attempt
            sending = self._open[attempt]
            sending.silent.discard(worker)
            if report.kind:
                failed.append(
                    Failed(now, worker, attempt, report.kind, report.message, report.fatal)
                )
            else:
                sending.accepted.add(worker)
                invoked.setdefault(attempt, []).append(worker)
            if not sending.silent:
                self._complete(sending)
        if self._unsaved and now >= self._unsaved[0].at + self._save_after:
            self.save()
        accepted = [Invoked(now, tuple(workers), attempt) for attempt, workers in invoked.items()]
        return [*accepted, *failed]

    def _ended(self) -> Callable[[int, int], bool]:
        """Tells whether an attempt of a worker is over, by its answers or its error."""
        context = self._context
        failed = {(error.worker, error.attempt) for error in context.errors}

        def ended(worker: int, attempt: int) -> bool:
            return (worker, attempt) in failed or not self._missing(worker)

        return ended

    def close(self) -> None:
        """Drop the invocations that have not begun."""
        self._window.close()

    def hand_over(self) -> None:
        """Write down exactly who was invoked, for the coordinator that carries on."""
        self._window.close()
        self.hear()
        for sending in list(self._open.values()):
            self._complete(sending)
        if self._unsaved:
            self.save()

    def _complete(self, sending: _Sending) -> None:
        """Keep the dispatch with those whom the platform accepted: nobody waits for the others."""
        context, now = self._context, self._context.clock.now()
        begun = sending.dispatch
        began, attempt = begun.at, begun.attempt
        del self._open[attempt]
        context.spend("dispatch", now - began)
        accepted = tuple(sorted(sending.accepted))
        done = Dispatch(attempt, accepted, now, complete=True, relaunch=begun.relaunch)
        context.journal = context.journal.dispatching(done)
        self._unsaved.append(done)

    def save(self, change: Callable[[Journal], Journal] = lambda now: now) -> None:
        """Write a change to run.json, and with it the dispatches that are complete."""
        context, done = self._context, tuple(self._unsaved)

        def every(now: Journal) -> Journal:
            for dispatch in done:
                now = now.dispatching(dispatch)
            return change(now)

        context.journal = write(context.store, context.journal, every)
        self._unsaved.clear()
