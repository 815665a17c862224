"""The loop around the run machine: looks into the store and tells the machine what it sees."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace

from blockstore.errors import StoreUnavailable
from blockstore.records import ErrorRecord
from coordinator import events
from coordinator.answers import DecisiveAnswerLost
from coordinator.collect import Collector, Listing
from coordinator.context import RunContext
from coordinator.dispatch import Dispatcher
from coordinator.journal import load_journal
from coordinator.machine import step
from coordinator.pace import FASTEST, pause
from coordinator.performer import Performer
from coordinator.signals import (
    Arrived,
    Decided,
    Decode,
    Failed,
    Finish,
    PutStop,
    Signal,
    Started,
    StopRequested,
    Tick,
    TimeLimitNear,
)
from coordinator.state import State

__all__ = ["DecisiveAnswerLost", "RunLoop"]

LISTING_FAILURES = 5  # in a row, on top of the client's own repetitions
HANDOVER_SECONDS = 20.0  # kept free before a time limit, to write the estimate


class RunLoop:
    """One coordinator's part in a run.

    Parameters
    ----------
    state : where the run stands: fresh, or read back from what another coordinator left
    time_left : seconds until the platform ends this process, None without such a limit
    fastest : seconds between two looks, at least
    """

    def __init__(
        self,
        context: RunContext,
        state: State,
        collector: Collector,
        dispatcher: Dispatcher,
        performer: Performer,
        time_left: Callable[[], float] | None = None,
        fastest: float = FASTEST,
    ) -> None:
        self.state = state
        self._context = context
        self._collector = collector
        self._dispatcher = dispatcher
        self._performer = performer
        self._time_left = time_left
        self._fastest = fastest
        self._queue: deque[Signal] = deque()
        self._listing_failures = 0
        self._listing_seconds = 0.0

    def run(self) -> Finish:
        """Carry the run to its end, or to where another coordinator has to take over.

        Ctrl-C ends it as "stopped": workers that have not begun do not begin, and the estimate is
        kept. So does an exception in the caller's `on_event` (`RunContext.listener_failure`).
        Raises the store's errors; whatever is raised, the run can be resumed.
        """
        context, clock = self._context, self._context.clock
        try:
            try:
                self._begin()
                while self._performer.finish is None and context.listener_failure is None:
                    clock.sleep(
                        pause(self.state, clock.now(), self._listing_seconds, self._fastest)
                    )
                    self._poll()
                if self._performer.finish is None:
                    self._stop()
            except KeyboardInterrupt:
                self._stop()
            if self._performer.finish is not None and self._performer.finish.state == "running":
                self._dispatcher.hand_over()
        finally:
            self._dispatcher.close()
            self._collector.close()
        finish, failure = self._performer.finish, context.listener_failure
        if finish is None:
            raise RuntimeError("the run machine did not end the run")
        if failure is not None and finish.state == "stopped":
            reason = f"on_event raised {type(failure).__name__}: {failure}"
            return replace(finish, message=f"the run was stopped: {reason}")
        return finish

    def _stop(self) -> None:
        try:
            self._tell(StopRequested(self._context.clock.now(), "stopped"))
        except KeyboardInterrupt:  # in a hurry: no estimate, but nobody is paid any longer
            self._performer.do(PutStop(self.state.attempt), self.state)
            raise

    def _begin(self) -> None:
        context = self._context
        if context.journal.dispatches and self.state.decisive is None:
            listing = self._collector.look()
            past = [
                r if r.worker in listing.rejected else replace(r, fatal=False)
                for r in listing.failures
            ]  # what denied them may have been put right since
            self._take_in(replace(listing, failures=tuple(past)), seen_coming=False)
        self._tell(Started(context.clock.now()))

    def _poll(self) -> None:
        clock = self._context.clock
        for signal in self._dispatcher.hear():
            if isinstance(signal, Failed):
                self._report(signal, "invoke")
            self._tell(signal)
        began = clock.now()
        try:
            listing = self._collector.look()
            self._listing_failures = 0
        except StoreUnavailable:
            self._listing_failures += 1
            if self._listing_failures >= LISTING_FAILURES:
                raise
        else:
            self._listing_seconds = listing.seconds
            self._context.spend("collect", clock.now() - began)
            self._take_in(listing)
            if self.state.phase == "collecting" and listing.stops - self._performer.stops:
                self._end_with_others()
        if self._time_left is not None and self._time_left() < HANDOVER_SECONDS:
            self._tell(TimeLimitNear(clock.now()))
        self._tell(Tick(clock.now()))

    def _end_with_others(self) -> None:
        """Somebody else put a stop marker: a coordinator that has decided, or who cancelled."""
        context = self._context
        context.journal = load_journal(context.store)
        decisive, now = context.journal.spec.decisive, context.clock.now()
        self._tell(Decided(now, decisive) if decisive else StopRequested(now, "cancelled"))

    def _complete(self, decisive: tuple[int, ...]) -> None:
        """Have the answers of a decisive set that another coordinator stored."""
        answers = self._context.answers
        if any(place not in answers for place in decisive):
            self._take_in(self._collector.look(only=decisive))
        lost = [place for place in decisive if place not in answers]
        if lost:
            whose = answers.form.shares.describe_all(lost)
            raise DecisiveAnswerLost(
                f"run {self._context.store.run}: the answers of {whose} were decided upon "
                "and are gone or damaged; start a new run"
            )

    def _take_in(self, listing: Listing, *, seen_coming: bool = True) -> None:
        context, now = self._context, self._context.clock.now()
        broken = {
            r.worker for r in listing.failures if r.worker in listing.rejected and not r.fatal
        }
        if broken:  # or another attempt's answer could not be written in its place
            self._collector.discard(broken)
        for record in listing.failures:
            attempt = record.attempt
            if record.worker in listing.rejected:  # whoever wrote it, the newest attempt's is gone
                attempt = self.state.tasks[record.worker].attempt
            failed = Failed(now, record.worker, attempt, record.type, record.message, record.fatal)
            self._report(failed, record.where)
            self._tell(failed)
            slow = self.state.tasks[record.worker]
            if record.worker in listing.rejected and slow.open:  # the other attempt's is gone too
                self._tell(replace(failed, attempt=slow.attempt))
        if not listing.answers:
            return
        for answer in listing.answers:
            context.answers.add(answer.place, answer.value, answer.metadata)
            context.arrived_at.setdefault(answer.place, now)
            context.emit(events.Arrived, worker=answer.worker, task=answer.task)
        places = tuple(answer.place for answer in listing.answers)
        context.judge.add(places)
        said = tuple(answer.metadata.seconds_total for answer in listing.answers)
        self._tell(Arrived(now, places, None if seen_coming else said))

    def _report(self, failed: Failed, where: str) -> None:
        self._context.errors.append(
            ErrorRecord(
                worker=failed.worker,
                attempt=failed.attempt,
                type=failed.kind,
                message=failed.message,
                where=where,
                fatal=failed.fatal,
            )
        )
        self._context.emit(
            events.Failed,
            worker=failed.worker,
            attempt=failed.attempt,
            kind=failed.kind,
            message=failed.message,
            fatal=failed.fatal,
        )

    def _tell(self, signal: Signal) -> None:
        """Give the machine a signal, and do what it orders until it orders nothing more."""
        self._queue.append(signal)
        while self._queue:
            self.state, actions = step(self.state, self._queue.popleft())
            for action in actions:
                if isinstance(action, Decode):
                    self._complete(action.workers)
                self._queue.extend(self._performer.do(action, self.state))
