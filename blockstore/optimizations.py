"""The objects of an optimisation that are not those of one round."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from blockstore import arrays, documents
from blockstore import optimization_keys as keys
from blockstore.bucket import Bucket
from blockstore.errors import ObjectMissing, RunRecordError
from blockstore.keys import is_run, validate_run

if TYPE_CHECKING:
    from numpy.typing import NDArray

JSON = "application/json"

__all__ = ["OptimizationStore", "delete_optimization", "list_optimizations"]


class OptimizationStore:
    """Spec, checkpoints, status and report; every method is one or a few S3 requests."""

    def __init__(self, bucket: Bucket, optimization: str) -> None:
        self.bucket = bucket
        self.optimization = validate_run(optimization)

    def create(self, spec: Mapping[str, Any]) -> bool:
        """Write spec.json unless there is one; False if there was."""
        body = documents.dump(spec)
        key = keys.spec_key(self.optimization)
        return bool(self.bucket.put(key, body, content_type=JSON, if_none_match=True))

    def load_spec(self) -> dict[str, Any]:
        """What was asked; raises `ObjectMissing` if there is no such optimisation."""
        return self._load(keys.spec_key(self.optimization), "spec.json")

    def put_checkpoint(
        self, iterations: int, state: NDArray[Any], figures: Mapping[str, str], writer: str
    ) -> bool:
        """Write the state after `iterations`, with its figures as metadata; False if another
        coordinator has.

        One object, so that a state and its figures are never of different iterations; the first
        coordinator that has it wins, and a second one sees that it is not alone. `writer` is a
        name of this coordinator's own.
        """
        key = keys.checkpoint_key(self.optimization, iterations)
        return arrays.put_first(self.bucket, key, state, writer=writer, metadata=figures)

    def latest_checkpoint(self) -> int | None:
        """The number of iterations of the newest checkpoint, None before the first."""
        prefix = keys.checkpoints_prefix(self.optimization)
        numbers = [keys.parse_checkpoint_key(info.key) for info in self.bucket.list(prefix)]
        return max(numbers, default=None)

    def load_checkpoint(self, iterations: int) -> tuple[NDArray[Any], dict[str, str]]:
        """(state, figures) after `iterations`."""
        key = keys.checkpoint_key(self.optimization, iterations)
        body, figures = self.bucket.get_object(key)
        return arrays.located(self.bucket, key, body, None, None), figures

    def put_status(self, status: Mapping[str, Any]) -> None:
        """Write how far it is, over what was there."""
        key = keys.status_key(self.optimization)
        self.bucket.put(key, documents.dump(status), content_type=JSON)

    def get_status(self) -> dict[str, Any]:
        """How far it is; raises `ObjectMissing` before the first status."""
        return self._load(keys.status_key(self.optimization), "status.json")

    def put_report(self, report: Mapping[str, Any]) -> None:
        """Write the report."""
        key = keys.report_key(self.optimization)
        self.bucket.put(key, documents.dump(report), content_type=JSON)

    def cancel(self) -> None:
        """Ask the coordinator to end after the round it is in."""
        self.bucket.put(keys.cancel_key(self.optimization), b"cancel\n")

    def cancelled(self) -> bool:
        """Whether somebody asked it to end."""
        return self.bucket.head(keys.cancel_key(self.optimization)) is not None

    def withdraw_cancel(self) -> None:
        """Forget that somebody asked: it is being resumed."""
        self.bucket.delete([keys.cancel_key(self.optimization)])

    def _load(self, key: str, what: str) -> dict[str, Any]:
        try:
            body = self.bucket.get(key)
        except ObjectMissing as exc:
            raise ObjectMissing(
                f"optimisation {self.optimization} has no {what} in s3://{self.bucket.name}: "
                "`polarlambda optimizations list` shows those there are"
            ) from exc
        found = documents.parse(body, what, RunRecordError)
        if not isinstance(found, dict):
            raise RunRecordError(f"{what}: must be a JSON object")
        return found


def list_optimizations(bucket: Bucket) -> Iterator[str]:
    """The ids of all optimisations, oldest first."""
    for name in bucket.folders(keys.OPTIMIZATIONS):
        if is_run(name):
            yield name


def delete_optimization(bucket: Bucket, optimization: str) -> int:
    """Delete everything of an optimisation; the number of objects. Raises `ObjectMissing`."""
    count = bucket.delete_prefix(keys.optimization_prefix(optimization))
    if count == 0:
        raise ObjectMissing(
            f"there is no optimisation {optimization} in s3://{bucket.name}: nothing to delete"
        )
    return count
