"""One round of evaluations: invoke, collect values and failures, end when enough is known.

Everything of the round is in the store: a coordinator that died is replaced by one that collects
the same round again and invokes only those that have neither answered nor failed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

from blockstore.errors import RunRecordError, StoreUnavailable
from blockstore.evaluations import Evaluation, EvaluationFailure, EvaluationTask
from blockstore.rounds import RoundStore
from coordinator.ports import Clock, InvokeReport
from coordinator.wait import Wait

__all__ = ["AllFailed", "Evaluator", "RoundOutcome", "RoundRules", "collect_round"]

FIRST_PAUSE = 0.02
LONGEST_PAUSE = 1.0
LISTING_FAILURES = 5  # in a row, on top of the client's own repetitions
THREADS = 16


class AllFailed(RuntimeError):
    """No evaluation of a round gave a value; the message is the objective's own."""


class Evaluator(Protocol):
    """Starts evaluations asynchronously (`coordinator.invoker.LambdaInvoker` does)."""

    def submit(self, tasks: Sequence[EvaluationTask]) -> None:
        """Begin to invoke; returns at once."""
        ...

    def reports(self) -> list[InvokeReport]:
        """What has become of invocations since the last call."""
        ...

    def close(self) -> None:
        """Drop the invocations that have not begun, wait for those under way."""
        ...


@dataclass(frozen=True)
class RoundRules:
    """wait: when enough has come; timeout: seconds after which a silent evaluation is dead;
    values: numbers in an answer (2 for a pair of points, 1 for the point itself)."""

    wait: Wait
    timeout: float
    values: int


@dataclass
class RoundOutcome:
    """What a round gave. `unreadable`: workers whose answers are damaged, so erased; `silent`:
    workers that had neither answered nor failed at its end; `enough`: what was waited for had come;
    seconds: on the coordinator's clock."""

    answers: dict[int, Evaluation] = field(default_factory=dict)
    failures: dict[int, EvaluationFailure] = field(default_factory=dict)
    unreadable: set[int] = field(default_factory=set)
    silent: tuple[int, ...] = ()
    enough: bool = False
    seconds: float = 0.0
    listings: int = 0

    @property
    def arrived(self) -> list[int]:
        """The workers whose values are there, ascending."""
        return sorted(self.answers)


def collect_round(
    store: RoundStore,
    tasks: Sequence[EvaluationTask],
    evaluator: Evaluator,
    rules: RoundRules,
    clock: Clock,
    decodable: Callable[[Sequence[int]], bool],
) -> RoundOutcome:
    """Evaluate `tasks` and return what came until `rules.wait` was met or nobody was left.

    Raises `AllFailed` if every evaluation failed, and when one failure is fatal; `StoreError` if
    the store stays out of reach. Cost: two listings a look and one GET an answer.
    """
    opened = clock.now()
    outcome = RoundOutcome()
    everyone = {task.worker for task in tasks}
    invoked: dict[int, float] = {}
    troubles = 0
    pause = 0.0
    found: dict[int, bool] = {}  # by the number of values, which only grow

    def determined(arrived: Sequence[int]) -> bool:
        if len(arrived) not in found:
            found[len(arrived)] = decodable(arrived)
        return found[len(arrived)]

    with ThreadPoolExecutor(THREADS, thread_name_prefix="answers") as pool:
        _take_in(store, outcome, rules, pool)  # of a coordinator before this one
        evaluator.submit([t for t in tasks if t.worker not in outcome.answers])
        while True:
            for report in evaluator.reports():
                if report.kind:
                    outcome.failures[report.worker] = _not_invoked(report)
                else:
                    invoked[report.worker] = clock.now()
            _refuse_fatal(outcome)
            now = clock.now()
            outcome.seconds = now - opened
            outcome.enough = rules.wait.met(
                outcome.arrived, len(everyone), outcome.seconds, determined
            )
            dead = {w for w, at in invoked.items() if now - at > rules.timeout}
            open_ = everyone - set(outcome.answers) - set(outcome.failures) - dead
            if outcome.enough or not open_:
                break
            clock.sleep(pause)
            try:
                news = _take_in(store, outcome, rules, pool)
                troubles = 0
            except StoreUnavailable:
                troubles += 1
                if troubles >= LISTING_FAILURES:
                    raise
                news = 0
            pause = FIRST_PAUSE if news else min(LONGEST_PAUSE, max(FIRST_PAUSE, 1.5 * pause))
    outcome.silent = tuple(sorted(everyone - set(outcome.answers) - set(outcome.failures)))
    if not outcome.answers:
        raise AllFailed(_why(outcome))
    return outcome


def _take_in(
    store: RoundStore, outcome: RoundOutcome, rules: RoundRules, pool: ThreadPoolExecutor
) -> int:
    """Fetch what is new; the number of answers and failures that are. An unreadable answer is an
    erasure, as a failure that says so."""
    outcome.listings += 2
    fresh = sorted(store.answered() - set(outcome.answers) - outcome.unreadable)
    known = {(f.worker, f.attempt) for f in outcome.failures.values()}
    failed = sorted(store.failed() - known)
    for worker, found in zip(fresh, pool.map(lambda w: _read(store, w, rules), fresh), strict=True):
        if isinstance(found, Evaluation):
            outcome.answers[worker] = found
            outcome.failures.pop(worker, None)
        else:
            outcome.failures[worker] = found
            outcome.unreadable.add(worker)  # the first answer stays: it is not looked at again
    for failure in pool.map(lambda place: store.get_failure(*place), failed):
        if failure.worker not in outcome.answers:
            outcome.failures[failure.worker] = failure
    return len(fresh) + len(failed)


def _read(store: RoundStore, worker: int, rules: RoundRules) -> Evaluation | EvaluationFailure:
    try:
        answer = store.get_answer(worker)
    except RunRecordError as exc:
        return EvaluationFailure(
            worker=worker, attempt=1, type=type(exc).__name__, message=str(exc)
        )
    if len(answer.values) != rules.values:
        return EvaluationFailure(
            worker=worker,
            attempt=answer.attempt,
            type="WrongShape",
            message=f"{rules.values} values were asked for, {len(answer.values)} came",
            fatal=True,
        )
    return answer


def _not_invoked(report: InvokeReport) -> EvaluationFailure:
    return EvaluationFailure(
        worker=report.worker,
        attempt=report.attempt,
        type=report.kind,
        message=report.message,
        fatal=report.fatal,
    )


def _refuse_fatal(outcome: RoundOutcome) -> None:
    fatal = next((f for f in outcome.failures.values() if f.fatal), None)
    if fatal is not None:
        raise AllFailed(f"{fatal.type}: {fatal.message}")


def _why(outcome: RoundOutcome) -> str:
    if not outcome.failures:
        return (
            f"none of {len(outcome.silent)} evaluations answered within the worker's time limit: "
            "give the function more time or memory, or make the objective faster"
        )
    kinds: dict[str, int] = {}
    for failure in outcome.failures.values():
        text = f"{failure.type}: {failure.message}"
        kinds[text] = kinds.get(text, 0) + 1
    worst = max(kinds, key=lambda text: kinds[text])
    silent = f", {len(outcome.silent)} were silent" if outcome.silent else ""
    return f"all evaluations failed, {kinds[worst]} of {len(outcome.failures)} with {worst}{silent}"
