"""The life of a run as a pure state machine: (state, signal) -> (state, actions).

No clock, no network, no randomness: the same code runs in the command, in the coordinator
function, in simulations and in the fault tests. The rules, in the order in which they are checked
after an arrival and at every tick; those that time alone brings about only at a tick, which comes
after a look into the store, so that no answer that is there goes unused:

1. The verified answers are decodable: keep the set, stop the workers, decode.
2. `until` is met by what is here (error=X, tasks=X, seconds=T): end with the estimate.
3. The deadline has passed: end with the estimate.
4. Everybody heard from reports the same fatal error: end as failed, without waiting.
5. The policy finds workers slow: invoke them once more (`coordinator.relaunch`).
6. No decodable set can come any more from what is still running: invoke the missing blocks once
   more, if that can help; else wait for what still runs, and then end with the estimate, or as
   failed when a fatal error is to blame.
7. There are new answers and the last estimate's share of the time allows it: publish an estimate.

A slow worker that was invoked once more has two attempts under way, and is lost when both are. A
silent worker counts as dead at its time-out; an answer that comes later is still taken. A fatal
error (permission, wrong shape, NaN, wrong x) is never invoked again and is always shown; the run
is exact in spite of it only when the other answers are decodable without that block.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from coordinator.heard import bury_silent, note_failure, take_in, with_tasks
from coordinator.relaunch import slow_workers
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
        case Arrived():
            state = take_in(state, signal)
        case Failed():  # judged at the next Tick, together with all that one listing shows
            return note_failure(state, signal), ()
        case Invoked(at=at, workers=workers, attempt=attempt):
            accepted = {
                w: replace(state.tasks[w], status="running", invoked=at)
                for w in workers
                if state.tasks[w].status == "pending" and state.tasks[w].attempt == attempt
            }
            state = with_tasks(state, accepted)
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
    state, first = _invoke(state, at, idle)
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
        state = bury_silent(state, at)
        if slow := slow_workers(state, at):
            state, again = _invoke(state, at, slow, relaunch=True)
            state, then = _react_to_losses(state, at)
            return state, (*again, *then)
    return _react_to_losses(state, at)


def _react_to_losses(state: State, at: float) -> tuple[State, tuple[Action, ...]]:
    """Rules 4, 6 and 7: fail fast, invoke again, give up, or publish and wait."""
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
                state, actions = _invoke(state, at, again)
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


def _invoke(
    state: State, at: float, workers: Sequence[int], *, relaunch: bool = False
) -> tuple[State, tuple[Action, ...]]:
    attempt = state.attempt + 1
    changed = {}
    for w in sorted(workers):
        last = state.tasks[w]
        changed[w] = Task(
            "pending",
            attempt,
            ordered=at,
            tries=last.tries if relaunch else last.tries + 1,
            relaunched=relaunch or last.relaunched,
            earlier=last if relaunch and last.open else None,
        )
    order = Invoke(tuple(changed), attempt, relaunch)
    return replace(with_tasks(state, changed), attempt=attempt), (order,)


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
