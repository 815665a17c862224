"""The life of a run as a pure state machine: (state, signal) -> (state, actions).

No clock, no network, no randomness: the same code runs in the command, in the coordinator
function, in simulations and in the fault tests. The rules, in the order in which they are checked
after an arrival and at every tick; those that time alone brings about only at a tick, which comes
after a look into the store, so that no answer that is there goes unused:

1. The verified answers are decodable: keep the set, stop the workers, decode.
2. `until` is met by what is here (error=X, tasks=X, seconds=T): end with the estimate.
3. The deadline has passed: end with the estimate.
4. Everybody heard from reports the same fatal error: end as failed, without waiting.
5. No decodable set can come any more from what is still running: invoke the missing blocks once
   more, if that can help; else wait for what still runs, and then end with the estimate, or as
   failed when a fatal error is to blame.
6. There are new answers and the last estimate's share of the time allows it: publish an estimate.

A silent worker counts as dead at its time-out; an answer that comes later is still taken. A fatal
error (permission, wrong shape, NaN, wrong x) is never invoked again and is always shown; the run
is exact in spite of it only when the other answers are decodable without that block.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from blockstore.subtasks import Subtasks
from coordinator.signals import (
    Action,
    Arrived,
    Decided,
    Decode,
    Decoded,
    Failed,
    FinalState,
    Finish,
    Invoke,
    Invoked,
    Publish,
    Published,
    PutStop,
    Signal,
    Started,
    StopRequested,
    StoreDecisive,
    Tick,
    TimeLimitNear,
)
from coordinator.state import State, Task, deadline

__all__ = ["step"]

PUBLISH_SHARE = 0.1  # of the time, at most, goes into publishing estimates
PUBLISH_INTERVAL = 0.5  # seconds between two estimates, at least
SAME_ERROR = 3  # workers with the same fatal error, and no answer, end the run


def step(state: State, signal: Signal) -> tuple[State, tuple[Action, ...]]:
    """Take one signal in. A finished run ignores everything."""
    if state.phase == "finished":
        return state, ()
    match signal:
        case Decided(workers=workers):
            state = replace(state, phase="decoding", decisive=workers)
            return state, (PutStop(state.attempt), Decode(workers))
        case Decoded(contradiction=contradiction, how=how):
            if contradiction is not None:
                return _finish(state, "failed", False, contradiction)
            text = f"decoded from {len(state.decisive or ())} answers"
            return _finish(state, "exact", True, f"{text}, {how}" if how else text)
        case StopRequested(state=asked):
            return _finish(state, asked, False, f"the run was {asked} on request")
        case TimeLimitNear():
            message = "the coordinator's time limit is near: resume the run to carry on"
            return _finish(state, "running", False, message)
        case Started(at=at):
            return _start(state, at)
        case Arrived(at=at, workers=workers):
            state = _take_in(state, at, workers)
        case Failed():  # judged at the next Tick, together with all that one listing shows
            return _note_failure(state, signal), ()
        case Invoked(at=at, workers=workers, attempt=attempt):
            accepted = {
                w: replace(state.tasks[w], status="running", invoked=at)
                for w in workers
                if state.tasks[w].status == "pending" and state.tasks[w].attempt == attempt
            }
            state = _with_tasks(state, accepted)
        case Published(at=at, seconds=seconds):
            pause = max(PUBLISH_INTERVAL, seconds * (1 / PUBLISH_SHARE - 1))
            state = replace(state, publish_after=at + pause, fresh=False)
    return _advance(state, signal.at, looked=isinstance(signal, Tick))


def _start(state: State, at: float) -> tuple[State, tuple[Action, ...]]:
    if state.decisive is not None:
        return replace(state, phase="decoding"), (
            PutStop(state.attempt),
            Decode(state.decisive),
        )
    state = replace(state, phase="collecting")
    idle = [w for w, task in enumerate(state.tasks) if task.status == "idle"]
    if not idle or state.code.decodable(state.arrived):
        return _advance(state, at)
    state, first = _invoke(state, idle)
    state, then = _advance(state, at)
    return state, (*first, *then)


def _advance(state: State, at: float, *, looked: bool = False) -> tuple[State, tuple[Action, ...]]:
    if state.phase != "collecting":
        return state, ()
    arrived = state.arrived
    if len(arrived) >= state.code.data_blocks and state.code.decodable(arrived):
        return replace(state, phase="deciding"), (StoreDecisive(arrived),)
    until = state.rules.until
    if until.kind == "error" and until.bound is not None and state.within(until.bound):
        return _finish(
            state, "estimated", True, f"predicted error {state.error:.3g}, asked {until}"
        )
    if until.kind == "tasks" and until.bound is not None and state.recovered is not None:
        share = state.recovered(arrived)
        if share >= until.bound:
            return _finish(state, "estimated", True, f"{share:.1%} of the rows, asked {until}")
    if looked:
        if until.kind == "seconds" and until.bound is not None and at >= state.opened + until.bound:
            return _end_with_estimate(state, True, f"{until.bound:g} s have passed")
        limit = deadline(state)
        if limit is not None and at >= limit:
            return _end_with_estimate(state, False, f"deadline after {limit - state.opened:.1f} s")
        state = _bury_silent(state, at)
    return _react_to_losses(state, at)


def _react_to_losses(state: State, at: float) -> tuple[State, tuple[Action, ...]]:
    """Rules 4 to 6: fail fast, invoke again, give up, or publish and wait."""
    arrived = state.arrived
    lost = [w for w, t in enumerate(state.tasks) if t.status in ("failed", "dead")]
    if lost:
        fatal = [state.tasks[w] for w in lost if state.tasks[w].fatal]
        enough = min(SAME_ERROR, len(state.tasks))
        if not arrived and len(fatal) >= enough and len({t.kind for t in fatal}) == 1:
            return _finish(state, "failed", False, _blame(state))
        running = [w for w, t in enumerate(state.tasks) if t.open]
        if not state.code.decodable(state.with_arrived(running)):
            again = [w for w in lost if _may_retry(state, state.tasks[w])]
            in_time = state.code.decodable(state.with_arrived((*running, *again)))
            if again and in_time:
                state, actions = _invoke(state, again)
                return state, actions
            if fatal and not in_time:
                return _finish(state, "failed", False, _blame(state))
            if not running:
                return _end_with_estimate(state, False, "no decodable set of answers can come")
    if state.fresh and arrived and at >= state.publish_after:
        return replace(state, fresh=False), (Publish(),)
    return state, ()


def _may_retry(state: State, task: Task) -> bool:
    return not task.fatal and task.tries < state.rules.attempts


def _invoke(state: State, workers: Sequence[int]) -> tuple[State, tuple[Action, ...]]:
    attempt = state.attempt + 1
    changed = {w: Task("pending", attempt, tries=state.tasks[w].tries + 1) for w in sorted(workers)}
    return replace(_with_tasks(state, changed), attempt=attempt), (Invoke(tuple(changed), attempt),)


def _take_in(state: State, at: float, workers: Iterable[int]) -> State:
    if state.shares is not None:
        return _take_in_parts(state, state.shares, at, frozenset(workers))
    new = {
        w: replace(state.tasks[w], status="answered")
        for w in workers
        if state.tasks[w].status != "answered"
    }
    return replace(_with_tasks(state, new), last_news=at, fresh=True) if new else state


def _take_in_parts(state: State, shares: Subtasks, at: float, places: frozenset[int]) -> State:
    """A worker has answered when all its parts are here, whichever attempts they came from."""
    if places <= state.here:
        return state
    here = state.here | places
    done = {
        w: replace(state.tasks[w], status="answered")
        for w in {shares.owner(place)[0] for place in places}
        if here.issuperset(shares.places_of(w))
    }
    return replace(_with_tasks(state, done), here=here, last_news=at, fresh=True)


def _note_failure(state: State, failed: Failed) -> State:
    task = state.tasks[failed.worker]
    stale = failed.attempt < task.attempt and not failed.fatal
    if task.status == "answered" or stale:
        return state
    failure = f"{failed.kind}: {failed.message}" if failed.message else failed.kind
    changed = replace(task, status="failed", fatal=failed.fatal, kind=failed.kind, failure=failure)
    return _with_tasks(state, {failed.worker: changed})


def _bury_silent(state: State, at: float) -> State:
    limit = state.rules.worker_timeout
    dead = {
        w: replace(task, status="dead", failure=f"no sign of life within {limit:g} s")
        for w, task in enumerate(state.tasks)
        if task.status == "running" and task.invoked is not None and at >= task.invoked + limit
    }
    return _with_tasks(state, dead) if dead else state


def _with_tasks(state: State, changed: dict[int, Task]) -> State:
    tasks = list(state.tasks)
    for worker, task in changed.items():
        tasks[worker] = task
    return replace(state, tasks=tuple(tasks))


def _end_with_estimate(state: State, met: bool, why: str) -> tuple[State, tuple[Action, ...]]:
    arrived = len(state.arrived)
    if not arrived:
        return _finish(state, "failed", False, f"{why} and no answer arrived. {_blame(state)}")
    text = f"{why}; {arrived} of {state.code.workers} answered"
    lost = any(task.status in ("failed", "dead") for task in state.tasks)
    return _finish(state, "estimated", met, f"{text}. {_blame(state)}" if lost else text)


def _blame(state: State) -> str:
    """The most frequent kind of failure, fatal ones first, with the text of one, in one line."""
    lost = [t for t in state.tasks if t.status in ("failed", "dead")]
    lost = [t for t in lost if t.fatal] or lost
    if not lost:
        return "Nothing was heard of any worker."
    kinds = [task.kind for task in lost]
    worst = max(sorted(set(kinds)), key=kinds.count)
    text = next(task.failure for task in lost if task.kind == worst)
    return f"{kinds.count(worst)} of {len(state.tasks)} workers: {text}"


def _finish(
    state: State, final: FinalState, met: bool, message: str
) -> tuple[State, tuple[Action, ...]]:
    stop = () if final in ("exact", "running") else (PutStop(state.attempt),)
    return replace(state, phase="finished"), (*stop, Finish(final, met, message))
