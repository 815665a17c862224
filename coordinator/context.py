"""What the parts of a coordinator share: what the run is about, and what is known so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from blockstore.bucket import Bucket
from blockstore.pairs import Subject
from blockstore.records import ErrorRecord, RunStatus
from blockstore.runs import RunStore
from coordinator.answers import Answers, AnswerSet
from coordinator.cost import Usage
from coordinator.decode import Decoding
from coordinator.decode_options import DecodeOptions
from coordinator.estimate import ESTIMATORS, Estimates, ProductEstimate
from coordinator.events import Event
from coordinator.form import AnswerForm
from coordinator.journal import Journal
from coordinator.judge import Judge
from coordinator.ports import Clock
from coordinator.recovered import RecoveredRows
from coordinator.reference import Reference
from coordinator.stored_answers import StoredAnswers
from polarcodes import ErasureCode, code_from_manifest

__all__ = ["RunContext"]


@dataclass
class RunContext:
    """The first fields describe the run; the others fill up while it runs.

    arrived_at: time of arrival by place in the code, on the run's clock; phases: seconds by name;
    reference: the exact product that is added to the answers' one, None if they are answers to x;
    opened: when this coordinator began its part; listener_failure: what on_event raised, once it
    did; missing_rows: ranges of rows that a run with `tasks=X` ended without; options: how the
    product is made; decode_usage: invocations and requests of decode functions, and the GB-seconds
    that they may have taken at most, from how long they were waited for.
    """

    manifest: Subject
    code: ErasureCode
    store: RunStore
    answers: AnswerSet[Any]
    clock: Clock
    journal: Journal
    on_event: Callable[[Event], None] | None = None
    reference: Reference | None = None
    options: DecodeOptions = field(default_factory=DecodeOptions)
    arrived_at: dict[int, float] = field(default_factory=dict)
    errors: list[ErrorRecord] = field(default_factory=list)
    phases: dict[str, float] = field(default_factory=dict)
    estimate: ProductEstimate | None = None
    decoding: Decoding | None = None
    result_key: str | None = None
    estimate_key: str | None = None
    opened: float = 0.0
    listener_failure: BaseException | None = None
    missing_rows: tuple[tuple[int, int], ...] = ()
    decode_usage: Usage = field(default_factory=Usage)
    estimates: Estimates = field(init=False)
    judge: Judge = field(init=False)
    recovered: RecoveredRows = field(init=False)

    def __post_init__(self) -> None:
        self.opened = self.clock.now()
        spec, reference = self.journal.spec, self.reference
        self.estimates = Estimates(
            self.code,
            self.answers,
            spec.estimator,
            reference.shift if reference else None,
            metric=spec.metric,
        )
        changes = self.estimates if reference else None
        self.judge = Judge(
            self.code, self.answers.form, ESTIMATORS[spec.estimator], changes, metric=spec.metric
        )
        self.recovered = RecoveredRows(self.code, self.manifest, self.judge.decodable)

    @classmethod
    def open(
        cls,
        bucket: Bucket,
        manifest: Subject,
        journal: Journal,
        clock: Clock,
        on_event: Callable[[Event], None] | None,
        reference: Reference | None,
        options: DecodeOptions,
    ) -> RunContext:
        """The context of a coordinator that begins its part in a run."""
        spec = journal.spec
        form = AnswerForm.of_run(manifest, spec)
        answers: AnswerSet[Any] = Answers(form)
        if not options.in_memory(form, spec):
            answers = StoredAnswers(form, bucket)
        code, store = code_from_manifest(manifest.code), RunStore(bucket, spec.run)
        return cls(manifest, code, store, answers, clock, journal, on_event, reference, options)

    @property
    def method(self) -> str:
        """The decoder once there is a product, the estimator before."""
        if self.decoding is not None:
            return self.decoding.method
        return self.estimate.method if self.estimate is not None else ""

    @property
    def metric(self) -> str:
        """What errors of estimates are errors of."""
        return self.journal.spec.metric

    @property
    def elapsed(self) -> float:
        """Seconds since the run began."""
        return self.clock.now() - self.journal.began

    def spend(self, phase: str, seconds: float) -> None:
        """Add to a phase's time."""
        self.phases[phase] = self.phases.get(phase, 0.0) + seconds

    def emit(self, event: type[Event], **fields: Any) -> None:
        """Tell the caller; fields that every event has are filled in.

        What the caller's function raises is kept, and it is told no more: the run is first brought
        to an end that leaves nobody working and nothing half written.
        """
        if self.on_event is None or self.listener_failure is not None:
            return
        arrivals = fields.setdefault("arrivals", len(self.answers))
        fields.setdefault("error", self.judge.predicted_error(arrivals))
        shares = self.manifest.shares
        fields |= {"workers": shares.workers, "subtasks": shares.per_worker, "metric": self.metric}
        told = event(t=self.elapsed, run=self.store.run, **fields)
        try:
            self.on_event(told)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - `start_run` raises it when the run has ended
            self.listener_failure = error

    def put_status(
        self, state: str, attempt: int, message: str = "", cost: Mapping[str, Any] | None = None
    ) -> None:
        """Write status.json."""
        exact, known = state == "exact", self.estimate
        self.store.put_status(
            RunStatus(
                run=self.store.run,
                state=state,
                arrivals=len(self.answers),
                workers=self.manifest.workers,
                error=0.0 if exact else known.error if known else None,
                error_upper=0.0 if exact else known.error_upper if known else None,
                exact=exact,
                verified=exact and self.decoding is not None and self.decoding.verified,
                method=self.method,
                metric=self.metric,
                rounding=self.decoding.error if exact and self.decoding is not None else None,
                seconds=self.elapsed,
                attempt=max(1, attempt),
                message=message,
                cost=dict(cost) if cost is not None else None,
                subtasks=self.manifest.shares.per_worker,
            )
        )
