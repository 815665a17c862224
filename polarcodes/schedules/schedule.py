"""A schedule: which coded tasks each worker does, in which order, and what it sends when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from polarcodes.checks import integer
from polarcodes.errors import InvalidWorkers
from polarcodes.schedules import checks
from polarcodes.schedules.manifest import read_manifest, write_manifest
from polarcodes.schedules.recovery import Recovery
from polarcodes.schedules.text import schedule_text

SENDING = ("each", "together", "sum")


class Codeword(NamedTuple):
    """A sum of tasks: ``values[i]`` times task ``tasks[i]``."""

    tasks: NDArray[np.intp]
    values: NDArray[np.float64]


class Schedule:
    """Each of K workers does r coded tasks in order; together they stand for M tasks W_1..W_M.

    ``coefficients[t, k, m]``, shape (r, K, M), float64, read only: worker k's t-th codeword is the
    sum over m of that number times W_m. A codeword of several tasks is one matrix of a task's size,
    added up before the run, so every codeword costs a worker the same time (arXiv 1811.09271).

    ``sending`` says what a worker sends:

    - ``"each"``: the result of every codeword the moment it is done, r messages of 1/M of the
      product;
    - ``"together"``: all r results in one message when the last is done, r/M of the product (MCC);
    - ``"sum"``: the sum of its r results in one message (gradient coding). Tasks are then shares of
      the data, a result is as long as the whole gradient, and only the sum of all tasks can be
      recovered.

    Raises :class:`~polarcodes.errors.InvalidCode` for a table that is not (r, K, M), not finite, or
    in which a codeword is empty, a worker meets one twice, or a task appears nowhere; r must be in
    1..M.
    """

    def __init__(
        self, name: str, coefficients: ArrayLike, *, sending: str = "each", seed: int | None = None
    ) -> None:
        self.name = checks.name(name)
        self.sending = checks.sending(sending, SENDING)
        self.seed = None if seed is None else integer("seed", seed, 0, None)
        table = checks.coefficients(coefficients)
        table.flags.writeable = False
        self.coefficients: NDArray[np.float64] = table

    @classmethod
    def from_table(
        cls, name: str, table: Sequence[Sequence[Sequence[int]]], *, tasks: int
    ) -> Schedule:
        """Make the schedule whose worker k's t-th codeword is the plain sum of ``table[t][k]``.

        Tasks are counted from 0. Raises :class:`~polarcodes.errors.InvalidCode` for an empty or
        repeated task.

        >>> print(Schedule.from_table("mine", [[[0], [1]], [[1], [0, 1]]], tasks=2))
        mine: 2 workers, 2 codewords each, 2 tasks; every result is sent at once
        worker   1      2
        row 1   W1     W2
        row 2   W2  W1+W2
        """
        return cls(name, checks.table(table, tasks))

    @property
    def load(self) -> int:
        """r, the codewords of each worker."""
        return int(self.coefficients.shape[0])

    @property
    def workers(self) -> int:
        """K."""
        return int(self.coefficients.shape[1])

    @property
    def tasks(self) -> int:
        """M."""
        return int(self.coefficients.shape[2])

    @property
    def messages_per_worker(self) -> int:
        """r when every result is sent at once, else 1."""
        return self.load if self.sending == "each" else 1

    @property
    def message_volume(self) -> float:
        """Size of one message, in whole products (the paper's communication volume)."""
        return {"each": 1 / self.tasks, "together": self.load / self.tasks, "sum": 1.0}[
            self.sending
        ]

    def codeword(self, worker: int, row: int) -> Codeword:
        """Return what worker k computes as its t-th task."""
        self._require(worker, "worker", self.workers)
        self._require(row, "row", self.load)
        return self._sparse(self.coefficients[row, worker])

    def equations(self, worker: int, message: int = 0) -> tuple[Codeword, ...]:
        """Return what a message says about the tasks: one codeword for each row of its value."""
        self._require(worker, "worker", self.workers)
        self._require(message, "message", self.messages_per_worker)
        if self.sending == "each":
            return (self._sparse(self.coefficients[message, worker]),)
        if self.sending == "sum":
            return (self._sparse(self.coefficients[:, worker].sum(axis=0)),)
        return tuple(self._sparse(self.coefficients[row, worker]) for row in range(self.load))

    def message_times(self, task_seconds: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return when messages arrive, (rounds, K) seconds per task -> (rounds, K, messages).

        The paper's timing: a worker takes the same time for each of its tasks, so its j-th ends at
        j times ``task_seconds``.
        """
        rows = np.arange(1, self.load + 1) if self.sending == "each" else np.array([self.load])
        return task_seconds[:, :, None] * rows

    def recovery(self) -> Recovery:
        """Return a decoder to which nothing has arrived yet."""
        return Recovery(self)

    def to_manifest(self) -> dict[str, Any]:
        """Return the schedule as pure JSON, every codeword written out."""
        return write_manifest(self)

    @classmethod
    def from_manifest(cls, manifest: Any) -> Schedule:
        """Rebuild a schedule, checking every field.

        Raises :class:`~polarcodes.errors.InvalidManifest`.
        """
        fields = read_manifest(manifest)
        with fields.refusals:
            return cls(fields.name, fields.coefficients, sending=fields.sending, seed=fields.seed)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schedule):
            return NotImplemented
        return (self.name, self.sending, self.seed) == (
            other.name,
            other.sending,
            other.seed,
        ) and np.array_equal(self.coefficients, other.coefficients)

    def __hash__(self) -> int:
        return hash((self.name, self.sending, self.coefficients.shape))

    def __repr__(self) -> str:
        return (
            f"Schedule({self.name!r}, workers={self.workers}, load={self.load}, "
            f"tasks={self.tasks}, sending={self.sending!r})"
        )

    def __str__(self) -> str:
        return schedule_text(self)

    @staticmethod
    def _require(value: int, name: str, count: int) -> None:
        if not 0 <= value < count:
            raise InvalidWorkers(f"{name} must be in 0..{count - 1}, got {value}")

    @staticmethod
    def _sparse(row: NDArray[np.float64]) -> Codeword:
        tasks = np.flatnonzero(row)
        return Codeword(tasks, row[tasks])
