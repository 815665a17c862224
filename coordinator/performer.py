"""Does what the run machine orders; what that leads to comes back as signals."""

from __future__ import annotations

from coordinator import events
from coordinator.context import RunContext
from coordinator.dispatch import Dispatcher
from coordinator.products import Products
from coordinator.signals import (
    Action,
    Decided,
    Decode,
    Finish,
    Invoke,
    Publish,
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
        self._products = Products(context)
        self.stops = set(stops)
        self.finish: Finish | None = None

    def do(self, action: Action, state: State) -> list[Signal]:
        """Carry out an order; returns the signals that follow from it."""
        context = self._context
        match action:
            case Invoke(workers=workers, attempt=attempt, relaunch=relaunch):
                self._dispatcher.send(workers, attempt, relaunch)
            case Publish():
                return [self._products.publish(state, "running")]
            case PutStop(attempt=attempt):
                for number in set(range(1, attempt + 1)) - self.stops:
                    context.store.put_stop(number)
                    self.stops.add(number)
            case StoreDecisive(workers=workers):
                self._dispatcher.save(lambda now: now.deciding(workers))
                kept = context.journal.spec.decisive or workers
                context.emit(events.Decodable, decisive=kept)
                return [Decided(context.clock.now(), kept)]
            case Decode(workers=workers):
                return [self._products.decode(workers)]
            case Finish():
                if action.state != "exact" and state.arrived:
                    self._products.publish(state, action.state)
                self.finish = action
        return []
