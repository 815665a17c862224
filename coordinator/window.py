"""Not many more workers under way than the account may run: the others are invoked as those end.

Lambda accepts every asynchronous event, and holds back those for which it has no environment with
pauses that double up to five minutes: it takes them long after there was room, and a worker that
has not begun would count as silent. So most of what is beyond the concurrency waits here. Some are
handed over all the same, because this coordinator hears late of an end and Lambda does not
(docs/scale.md has the simulation).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence

from coordinator.ports import Invocation, Invoker, InvokeReport

__all__ = ["OVERLAP", "Window"]

OVERLAP = 1.5


class Window:
    """Passes invocations on to `invoker`, half as many again as `concurrency` under way at a time;
    0 is no limit.

    timeout : seconds after which one that said nothing has ended
    """

    def __init__(self, invoker: Invoker, concurrency: int, timeout: float) -> None:
        self._invoker, self._timeout = invoker, timeout
        self._limit = math.ceil(OVERLAP * concurrency)
        self._waiting: deque[Invocation] = deque()
        self._under_way: dict[tuple[int, int], float] = {}  # (worker, attempt): since when

    def submit(self, tasks: Sequence[Invocation], now: float) -> None:
        """Invoke those for which there is room; the others wait, in this order."""
        if self._limit == 0:
            self._invoker.submit(tasks)
            return
        self._waiting.extend(tasks)
        self._release(now)

    def reports(self, now: float, ended: Callable[[int, int], bool]) -> list[InvokeReport]:
        """What has become of invocations, and invoke others for those of which `ended(worker,
        attempt)` says so. Cost: O(limit)."""
        reports = self._invoker.reports()
        if self._limit == 0:
            return reports
        for report in reports:
            place = (report.worker, report.attempt)
            if report.kind:
                self._under_way.pop(place, None)
            elif place in self._under_way:
                self._under_way[place] = now
        if self._waiting:
            self._under_way = {
                place: since
                for place, since in self._under_way.items()
                if now < since + self._timeout and not ended(*place)
            }
            self._release(now)
        return reports

    def close(self) -> None:
        """Invoke nobody any more."""
        self._waiting.clear()
        self._invoker.close()

    def _release(self, now: float) -> None:
        room = min(self._limit - len(self._under_way), len(self._waiting))
        if room <= 0:
            return
        tasks = [self._waiting.popleft() for _ in range(room)]
        self._under_way |= {(task.worker, task.attempt): now for task in tasks}
        self._invoker.submit(tasks)
