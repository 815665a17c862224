"""Does what the run machine orders; what that leads to comes back as signals."""

from __future__ import annotations

from coordinator import events
from coordinator.context import RunContext
from coordinator.decode import decode
from coordinator.dispatch import Dispatcher
from coordinator.estimate import estimate
from coordinator.journal import update
from coordinator.signals import (
    Action,
    Decided,
    Decode,
    Decoded,
    Finish,
    Invoke,
    Publish,
    Published,
    PutStop,
    Signal,
    StoreDecisive,
)
from coordinator.state import State

__all__ = ["Performer"]


class Performer:
    """The hands of a run.

    stops: attempts whose stop marker is in the store, so that one that somebody else puts is told
    from our own. finish: the machine's last order, once it came.
    """

    def __init__(self, context: RunContext, dispatcher: Dispatcher, stops: frozenset[int]) -> None:
        self._context = context
        self._dispatcher = dispatcher
        self.stops = set(stops)
        self.finish: Finish | None = None

    def do(self, action: Action, state: State) -> list[Signal]:
        """Carry out an order; returns the signals that follow from it."""
        context = self._context
        match action:
            case Invoke(workers=workers, attempt=attempt):
                self._dispatcher.send(workers, attempt)
            case Publish():
                return [self._publish(state, "running")]
            case PutStop(attempt=attempt):
                for number in set(range(1, attempt + 1)) - self.stops:
                    context.store.put_stop(number)
                    self.stops.add(number)
            case StoreDecisive(workers=workers):
                context.journal = update(context.store, lambda now: now.deciding(workers))
                kept = context.journal.spec.decisive or workers
                context.emit(events.Decodable, decisive=kept)
                return [Decided(context.clock.now(), kept)]
            case Decode(workers=workers):
                return [self._decode(workers)]
            case Finish():
                if action.state != "exact" and state.arrived:
                    self._publish(state, action.state)
                self.finish = action
        return []

    def _publish(self, state: State, name: str) -> Signal:
        context = self._context
        began = context.clock.now()
        known = estimate(
            context.code, context.answers, state.arrived, context.journal.spec.estimator
        )
        if state.rules.until.kind == "tasks":
            known = context.recovered.estimate(known, context.answers, state.arrived)
            context.missing_rows = context.recovered.missing(state.arrived)
        context.estimate = known
        context.store.put_estimate(known.value)
        context.put_status(name, state.attempt)
        seconds = context.clock.now() - began
        context.spend("estimate", seconds)
        context.emit(
            events.Estimated,
            error=known.error,
            value=known.value,
            error_upper=known.error_upper,
            method=known.method,
        )
        return Published(context.clock.now(), seconds)

    def _decode(self, decisive: tuple[int, ...]) -> Signal:
        context = self._context
        began = context.clock.now()
        found = context.decoding = decode(context.code, context.answers, decisive)
        decoded = context.clock.now()
        context.spend("decode", decoded - began)
        if found.contradiction is None and found.value is not None:
            context.result_key = context.store.put_final(found.value)
            context.spend("write", context.clock.now() - decoded)
            context.emit(
                events.Decoded,
                error=0.0,
                verified=found.verified,
                verification=found.verification,
                seconds=decoded - began,
                method=found.method,
                rounding=found.error,
            )
        return Decoded(context.clock.now(), found.contradiction, found.how)
