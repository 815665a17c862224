"""A platform in memory with simulated time: workers answer, fail or are silent as a table says."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from blockstore import keys
from blockstore.answers import AnswerMetadata
from blockstore.arrays import decode_array, encode_array
from blockstore.manifest import Manifest
from blockstore.records import ErrorRecord
from blockstore.tasks import WorkerTask, compute_dtype
from blockstore.tiling import Tiling
from coordinator.invoker import FunctionMissing, InvokeError
from coordinator.ports import Clock, InvokeReport
from encoder.shares import share_out
from polarcodes import make_code
from tests.memory_bucket import MemoryBucket, Stored

ENCODING = "0123456789abcdef"


class FakeClock:
    """Sleeping is what makes time pass."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self.start = self.time = start

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += max(seconds, 1e-3)


@dataclass(frozen=True)
class Answer:
    after: float = 0.1


@dataclass(frozen=True)
class Fail:
    kind: str = "StoreUnavailable"
    fatal: bool = False
    after: float = 0.1


@dataclass(frozen=True)
class Damaged:
    """An object that is no valid answer: `body` makes it from the right one."""

    how: str  # cut | shape | nan | other x
    after: float = 0.1


@dataclass(frozen=True)
class Refused:
    """The invocation itself fails."""

    kind: str = "InvokeUnavailable"
    fatal: bool = False


class Silent:
    """Dies without a word."""


@dataclass(frozen=True)
class Parts:
    """A worker with several tasks: `done` of those it was asked for, each taking `each` seconds
    after the first `after`; then it reports a failure, or dies without a word."""

    done: int
    after: float = 0.1
    each: float = 0.1
    fail: Fail | None = None
    damaged: str = ""  # how the last part is damaged


Outcome = Parts | Answer | Fail | Damaged | Refused | Silent


@dataclass
class Platform:
    """A matrix encoded by hand, and workers that do what `table[worker][attempt - 1]` says.

    A worker without an entry answers after 0.1 s plus a little for its number; past the end of
    its list the last entry holds. Implements `coordinator.ports.Invoker`.
    """

    workers: int = 16
    data_blocks: int = 11
    rows: int = 31
    columns: int = 9
    k: int | None = None
    dtype: str = "<f4"
    code_name: str = "polar"
    subtasks: int = 1
    per_object: int = 1
    table: dict[int, list[Outcome]] = field(default_factory=dict)
    default: list[Outcome] | None = None
    missing: bool = False
    scale: float = 1.0  # of the matrix
    clock: Clock = field(default_factory=FakeClock)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(3)
        self.bucket = MemoryBucket(now=self.clock.now)
        entries = rng.standard_normal((self.rows, self.columns))
        self.A = (entries * self.scale).astype(self.dtype)
        shape = (self.columns,) if self.k is None else (self.columns, self.k)
        self.x = rng.standard_normal(shape).astype("<f4")
        blocks, data_blocks = self.workers * self.subtasks, self.data_blocks * self.subtasks
        code = make_code(self.code_name, workers=blocks, data_blocks=data_blocks, seed=1)
        b = -(-self.rows // data_blocks)
        padded = np.zeros((data_blocks * b, self.columns), self.dtype)
        padded[: self.rows] = self.A
        coded = code.encode(padded.reshape(data_blocks, -1))
        self.coded = coded.reshape(blocks, b, self.columns)
        self.manifest = Manifest(
            name="photos",
            created="2026-01-01T00:00:00+00:00",
            rows=self.rows,
            columns=self.columns,
            source_dtype=self.dtype,
            block_rows=b,
            dtype=self.coded.dtype.str,
            tiling=Tiling(b, self.columns, b, self.columns),
            code=code.to_manifest(),
            encoding=ENCODING,
            source_digest="sha256:0",
            source="test",
            subtasks=share_out(code, blocks, self.subtasks, self.per_object),
        )
        self.bucket.put(keys.manifest_key("photos"), self.manifest.to_json())
        self.bucket.requests.clear()
        self.code = code
        self.invoked: list[tuple[int, int]] = []
        self.tasks: list[WorkerTask] = []
        self._reports: list[InvokeReport] = []
        self._coming: list[tuple[str, str, float]] = []  # stop key, key, when its tasks begin
        self.bucket.after_put = self._stop

    @property
    def product(self) -> np.ndarray:
        return self.A.astype("f8") @ self.x.astype("f8")

    def outcome(self, worker: int, attempt: int) -> Outcome:
        row = self.table.get(worker, self.default) or [Answer(0.1 + worker / 1000)]
        return row[min(attempt, len(row)) - 1]

    def check(self) -> None:
        if self.missing:
            raise FunctionMissing("function 'worker' does not exist: deploy the stack")

    def submit(self, tasks: Sequence[WorkerTask]) -> None:
        for task in tasks:
            WorkerTask.from_event(json.loads(json.dumps(task.to_event())))
            self.invoked.append((task.worker, task.attempt))
            self.tasks.append(task)
            self._work(task, self.outcome(task.worker, task.attempt))

    def reports(self) -> list[InvokeReport]:
        reports, self._reports = self._reports, []
        return reports

    def close(self) -> None:
        self.closed = True

    def _work(self, task: WorkerTask, outcome: Outcome) -> None:
        if isinstance(outcome, Refused):
            text = InvokeError("refused")
            self._reports.append(
                InvokeReport(task.worker, task.attempt, outcome.kind, str(text), outcome.fatal)
            )
            return
        self._reports.append(InvokeReport(task.worker, task.attempt))
        stop = keys.stop_key(task.run, task.attempt)
        if stop in self.bucket.objects or isinstance(outcome, Silent):
            return
        if self.subtasks > 1:
            self._work_in_parts(task, outcome)
            return
        since = self.clock.now() + outcome.after
        if isinstance(outcome, Fail):
            self._fail(task, outcome, since)
            return
        key = keys.result_key(task.run, task.worker)
        there = self.bucket.objects.get(key)
        if there is None or there.since > since:  # If-None-Match
            self.bucket.objects[key] = self._answer(task, outcome, since)

    def _work_in_parts(self, task: WorkerTask, outcome: Outcome) -> None:
        """Every part appears when it is done; those not begun at a stop marker never do."""
        if not isinstance(outcome, Parts):
            fail = outcome if isinstance(outcome, Fail) else None
            how = outcome.how if isinstance(outcome, Damaged) else ""
            done = 0 if fail else len(task.objects)
            outcome = Parts(done, outcome.after, fail=fail, damaged=how)
        since = self.clock.now() + outcome.after
        for number, (first, last) in enumerate(task.objects[: outcome.done]):
            begins, since = since, since + outcome.each * (last - first + 1)
            key = keys.part_key(task.run, task.worker, first, last)
            there = self.bucket.objects.get(key)
            if there is not None and there.since <= since:
                continue
            how = outcome.damaged if number == outcome.done - 1 else ""
            parts = range(first, last + 1)
            self.bucket.objects[key] = self._answer(task, Damaged(how), since, parts)
            self._coming.append((keys.stop_key(task.run, task.attempt), key, begins))
        if outcome.fail is not None:
            self._fail(task, outcome.fail, since)

    def _stop(self, stop: str) -> None:
        for marker, key, begins in self._coming:
            if marker == stop and begins > self.clock.now():
                self.bucket.objects.pop(key, None)

    def _fail(self, task: WorkerTask, outcome: Fail, since: float) -> None:
        record = ErrorRecord(
            worker=task.worker,
            attempt=task.attempt,
            type=outcome.kind,
            message="text",
            where="product",
            fatal=outcome.fatal,
        )
        body = json.dumps(record.to_json()).encode()
        key = keys.error_key(task.run, task.worker, task.attempt)
        self.bucket.objects[key] = Stored(body, {}, since)

    def _answer(
        self,
        task: WorkerTask,
        outcome: Answer | Damaged,
        since: float,
        parts: Sequence[int] = (0,),
    ) -> Stored:
        x = decode_array(self.bucket.objects[keys.x_key(task.run)].body)
        dtype = compute_dtype(self.coded.dtype, x.dtype)
        places = [self.manifest.shares.places_of(task.worker)[part] for part in parts]
        blocks = np.concatenate([self.coded[place] for place in places])
        value = (blocks.astype("f8") @ x.astype("f8")).astype(dtype)
        digest = task.x_digest
        how = outcome.how if isinstance(outcome, Damaged) else ""
        if how == "shape":
            value = value[:-1]
        if how == "nan":
            value[0] = np.nan
        if how == "wrong":
            value = value + self.scale
        if how == "other x":
            digest = "sha256:other"
        body = encode_array(value)
        metadata = AnswerMetadata(
            x_digest=digest,
            encoding=task.encoding,
            attempt=task.attempt,
            seconds_total=0.1,
            scale=self.scale,
        )
        return Stored(body[:-1] if how == "cut" else body, metadata.to_metadata(), since)
