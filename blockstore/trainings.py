"""The objects of one training: what was asked, its labels, a checkpoint for every iteration."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from blockstore import arrays, documents
from blockstore import training_keys as keys
from blockstore.bucket import Bucket, ObjectInfo
from blockstore.errors import ObjectMissing, RunRecordError
from blockstore.keys import is_run
from blockstore.training_records import TrainingSpec, TrainingStatus

if TYPE_CHECKING:
    from numpy.typing import NDArray

JSON = "application/json"

__all__ = ["Facts", "TrainingStore", "TrainingTaken", "delete_training", "list_trainings"]


class TrainingTaken(RuntimeError):
    """Another process goes on with the same training: this one wrote nothing over it."""


@dataclass(frozen=True)
class Facts:
    """What a checkpoint says of its iteration, besides arrays; see `polarlambda.training.iterate`.

    writer : the process that wrote it.
    """

    iteration: int
    loss: float
    norm: float
    first_norm: float
    step: float
    tolerance: float
    recovered: float
    exact: bool
    error: float
    seconds: float
    dollars: float
    runs: tuple[str, ...]
    writer: str = ""

    def to_metadata(self) -> dict[str, str]:
        """S3 user metadata; every digit of the numbers is kept."""
        return {
            "iteration": str(self.iteration),
            "loss": repr(self.loss),
            "norm": repr(self.norm),
            "first-norm": repr(self.first_norm),
            "step": repr(self.step),
            "tolerance": repr(self.tolerance),
            "recovered": repr(self.recovered),
            "exact": "1" if self.exact else "0",
            "error": repr(self.error),
            "seconds": repr(self.seconds),
            "dollars": repr(self.dollars),
            "runs": ",".join(self.runs),
            "writer": self.writer,
        }

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, str]) -> Facts:
        """Read back `to_metadata`; raises `RunRecordError`."""

        def number(name: str) -> float:
            try:
                value = float(metadata[name])
            except (KeyError, ValueError) as exc:
                raise RunRecordError(f"checkpoint: {name} must be a number") from exc
            if not math.isfinite(value):
                raise RunRecordError(f"checkpoint: {name} must be finite, got {value}")
            return value

        return cls(
            iteration=int(number("iteration")),
            loss=number("loss"),
            norm=number("norm"),
            first_norm=number("first-norm"),
            step=number("step"),
            tolerance=number("tolerance"),
            recovered=number("recovered"),
            exact=metadata.get("exact") == "1",
            error=number("error"),
            seconds=number("seconds"),
            dollars=number("dollars"),
            runs=tuple(run for run in metadata.get("runs", "").split(",") if run),
            writer=metadata.get("writer", ""),
        )


class TrainingStore:
    """The training's objects in a bucket; every method is one or two S3 requests."""

    def __init__(self, bucket: Bucket, training: str) -> None:
        self.bucket = bucket
        self.training = keys.validate_training(training)

    def create(
        self, spec: TrainingSpec, labels: NDArray[Any], moments: NDArray[Any] | None = None
    ) -> None:
        """Write the labels, and the sums over X that were computed once, then what was asked: with
        it the training is there. Raises `TrainingTaken` if it is already."""
        arrays.put_array(self.bucket, keys.labels_key(self.training), labels)
        if moments is not None:
            arrays.put_array(self.bucket, keys.moments_key(self.training), moments)
        body = documents.dump(spec.to_json())
        key = keys.training_key(self.training)
        if not self.bucket.put(key, body, if_none_match=True, content_type=JSON):
            raise TrainingTaken(f"training {self.training} has begun already: resume it")

    def load_spec(self) -> TrainingSpec:
        """What was asked; raises `ObjectMissing` if there is no such training."""
        try:
            body = self.bucket.get(keys.training_key(self.training))
        except ObjectMissing as exc:
            raise ObjectMissing(
                f"there is no training {self.training} in s3://{self.bucket.name}: "
                "`polarlambda trainings list` shows those there are"
            ) from exc
        return TrainingSpec.from_json(documents.parse(body, "spec.json", RunRecordError))

    def load_labels(self) -> NDArray[Any]:
        """The labels, as they were given."""
        return arrays.get_array(self.bucket, keys.labels_key(self.training))

    def load_moments(self) -> NDArray[Any]:
        """The sums over X: X^T [Y, 1] (d, k + 1) of a Gram form, X^T 1 (d, 1) of another."""
        return arrays.get_array(self.bucket, keys.moments_key(self.training), dtype="<f8")

    def put_checkpoint(self, facts: Facts, state: NDArray[Any]) -> None:
        """Write theta, gradient and memory of an iteration, (2 + m, p, k), and its facts, at once.

        Raises `TrainingTaken` if another process has written that iteration.
        """
        key = keys.checkpoint_key(self.training, facts.iteration)
        metadata, writer = facts.to_metadata(), facts.writer
        if arrays.put_first(self.bucket, key, state, writer=writer, metadata=metadata):
            return
        raise TrainingTaken(
            f"iteration {facts.iteration} of training {self.training} was computed by another "
            "process, which goes on with it: watch it with `polarlambda trainings watch "
            f"{self.training}`"
        )

    def list_checkpoints(self) -> dict[int, ObjectInfo]:
        """The checkpoints that are there, by iteration, ascending."""
        return {
            keys.parse_checkpoint_key(info.key): info
            for info in self.bucket.list(keys.checkpoints_prefix(self.training))
        }

    def get_facts(self, iteration: int) -> Facts:
        """The facts of a checkpoint, without its arrays."""
        return Facts.from_metadata(
            self.bucket.metadata(keys.checkpoint_key(self.training, iteration))
        )

    def get_checkpoint(self, iteration: int) -> tuple[Facts, NDArray[Any]]:
        """(facts, arrays) of a checkpoint."""
        key = keys.checkpoint_key(self.training, iteration)
        body, metadata = self.bucket.get_object(key)
        return Facts.from_metadata(metadata), arrays.located(self.bucket, key, body, None, "<f8")

    def put_status(self, status: TrainingStatus) -> None:
        """Write how the training is going, over what was there."""
        body = documents.dump(status.to_json())
        self.bucket.put(keys.training_status_key(self.training), body, content_type=JSON)

    def get_status(self) -> TrainingStatus:
        """How the training is going; raises `ObjectMissing` before anybody said so."""
        body = self.bucket.get(keys.training_status_key(self.training))
        return TrainingStatus.from_json(documents.parse(body, "status.json", RunRecordError))

    def put_theta(self, theta: NDArray[Any]) -> None:
        """Write the result."""
        arrays.put_array(self.bucket, keys.theta_key(self.training), theta)

    def get_theta(self) -> NDArray[Any]:
        """The result; raises `ObjectMissing` while there is none."""
        return arrays.get_array(self.bucket, keys.theta_key(self.training))

    def put_report(self, report: Mapping[str, Any]) -> None:
        """Write the report."""
        key = keys.training_report_key(self.training)
        self.bucket.put(key, documents.dump(report), content_type=JSON)


def list_trainings(bucket: Bucket) -> Iterator[str]:
    """The ids of all trainings, oldest first."""
    for training in bucket.folders(keys.TRAININGS):
        if is_run(training):
            yield training


def delete_training(bucket: Bucket, training: str) -> int:
    """Delete everything of a training; the number of objects. Raises `ObjectMissing`."""
    keys.validate_training(training)
    count = bucket.delete_prefix(keys.training_prefix(training))
    if count == 0:
        raise ObjectMissing(
            f"there is no training {training} in s3://{bucket.name}: nothing to delete"
        )
    return count
