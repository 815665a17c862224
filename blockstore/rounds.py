"""The objects of one round of evaluations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from blockstore import arrays, documents
from blockstore import optimization_keys as keys
from blockstore.bucket import Bucket
from blockstore.errors import RunRecordError
from blockstore.evaluations import Evaluation, EvaluationFailure, Round

if TYPE_CHECKING:
    from numpy.typing import NDArray

JSON = "application/json"

__all__ = ["RoundStore"]


class RoundStore:
    """A round's objects in a bucket; every method is one or a few S3 requests."""

    def __init__(self, bucket: Bucket, optimization: str, number: int) -> None:
        self.bucket = bucket
        self.optimization = optimization
        self.number = number

    def save(self, described: Round, point: NDArray[Any]) -> None:
        """Write the point, (2, p): theta and the step of every parameter, then round.json."""
        arrays.put_array(self.bucket, keys.point_key(self.optimization, self.number), point)
        body = documents.dump(described.to_json())
        key = keys.round_key(self.optimization, self.number)
        self.bucket.put(key, body, content_type=JSON)

    def load(self) -> Round:
        """What the round is about; raises `ObjectMissing`."""
        body = self.bucket.get(keys.round_key(self.optimization, self.number))
        return Round.from_json(documents.parse(body, "round.json", RunRecordError))

    def load_point(self, parameters: int) -> NDArray[Any]:
        """(2, p) float64: theta and the steps; raises `CorruptObject` for another shape."""
        key = keys.point_key(self.optimization, self.number)
        return arrays.get_array(self.bucket, key, shape=(2, parameters), dtype="<f8")

    def put_answer(self, answer: Evaluation) -> bool:
        """Write an answer unless there is one: the first one wins."""
        key = keys.answer_key(self.optimization, self.number, answer.worker)
        body = documents.dump(answer.to_json())
        return bool(self.bucket.put(key, body, content_type=JSON, if_none_match=True))

    def put_failure(self, failure: EvaluationFailure) -> None:
        """Write why an attempt has no answer."""
        number = self.number
        key = keys.failure_key(self.optimization, number, failure.worker, failure.attempt)
        self.bucket.put(key, documents.dump(failure.to_json()), content_type=JSON)

    def answered(self) -> set[int]:
        """The workers whose answers are there."""
        prefix = keys.answers_prefix(self.optimization, self.number)
        return {keys.parse_answer_key(info.key) for info in self.bucket.list(prefix)}

    def failed(self) -> set[tuple[int, int]]:
        """(worker, attempt) of the failures that are there."""
        prefix = keys.failures_prefix(self.optimization, self.number)
        return {keys.parse_failure_key(info.key) for info in self.bucket.list(prefix)}

    def get_answer(self, worker: int) -> Evaluation:
        """A worker's answer; raises `RunRecordError` if it is damaged."""
        body = self.bucket.get(keys.answer_key(self.optimization, self.number, worker))
        return Evaluation.from_json(documents.parse(body, "answer", RunRecordError))

    def get_failure(self, worker: int, attempt: int) -> EvaluationFailure:
        """Why a worker's attempt has no answer."""
        key = keys.failure_key(self.optimization, self.number, worker, attempt)
        return EvaluationFailure.from_json(
            documents.parse(self.bucket.get(key), "failure", RunRecordError)
        )

    def stop(self, described: Round) -> None:
        """Tell workers that have not begun not to begin."""
        key = keys.round_key(self.optimization, self.number)
        body = documents.dump(replace(described, stopped=True).to_json())
        self.bucket.put(key, body, content_type=JSON)
