"""The objects of one run: what was asked, what the workers answered, how far it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from blockstore import arrays, documents, keys
from blockstore.bucket import Bucket, ObjectInfo
from blockstore.errors import ObjectMissing, RunRecordError
from blockstore.records import ErrorRecord, RunSpec, RunStatus

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

JSON = "application/json"

__all__ = ["ErrorRecord", "RunSpec", "RunStatus", "RunStore", "delete_run", "list_runs"]


class RunStore:
    """The run's objects in a bucket; every method is one or a few S3 requests."""

    def __init__(self, bucket: Bucket, run: str) -> None:
        self.bucket = bucket
        self.run = keys.validate_run(run)

    def save_spec(self, spec: RunSpec) -> None:
        """Write run.json, over the one that is there."""
        self.bucket.put(keys.run_key(self.run), documents.dump(spec.to_json()), content_type=JSON)

    def load_spec(self) -> RunSpec:
        """What was asked; raises `ObjectMissing` if there is no such run."""
        try:
            body = self.bucket.get(keys.run_key(self.run))
        except ObjectMissing as exc:
            raise self._missing() from exc
        return RunSpec.from_json(documents.parse(body, "run.json", RunRecordError))

    def load_record(self) -> tuple[Mapping[str, Any], str]:
        """run.json as it is and its ETag, for a conditional write; raises like `load_spec`."""
        try:
            found = self.bucket.get_changed(keys.run_key(self.run), None)
        except ObjectMissing as exc:
            raise self._missing() from exc
        assert found is not None  # without a known ETag there is always something new
        record = documents.parse(found[0], "run.json", RunRecordError)
        if not isinstance(record, dict):
            raise RunRecordError("run.json: must be a JSON object")
        return record, found[1]

    def _missing(self) -> ObjectMissing:
        return ObjectMissing(
            f"there is no run {self.run} in s3://{self.bucket.name}: "
            "`polarlambda runs list` shows those there are"
        )

    def save_x(self, x: NDArray[Any]) -> None:
        """Write the vector or matrix to multiply by."""
        arrays.put_array(self.bucket, keys.x_key(self.run), x)

    def load_x(
        self, *, shape: tuple[int, ...] | None = None, dtype: DTypeLike | None = None
    ) -> NDArray[Any]:
        """Read it back; raises `CorruptObject` if shape or dtype differ."""
        return arrays.get_array(self.bucket, keys.x_key(self.run), shape=shape, dtype=dtype)

    def save_asked(self, x: NDArray[Any]) -> None:
        """Write the x that was asked for, where x.npy is a difference."""
        arrays.put_array(self.bucket, keys.asked_key(self.run), x)

    def load_asked(self, *, shape: tuple[int, ...] | None = None) -> NDArray[Any]:
        """Read it back; raises `CorruptObject` if the shape differs."""
        return arrays.get_array(self.bucket, keys.asked_key(self.run), shape=shape)

    def put_result(self, worker: int, answer: NDArray[Any], metadata: Mapping[str, str]) -> bool:
        """Write a worker's answer unless there is one: the first valid answer wins."""
        return arrays.put_array(
            self.bucket,
            keys.result_key(self.run, worker),
            answer,
            metadata=metadata,
            if_none_match=True,
        )

    def list_results(self) -> dict[int, ObjectInfo]:
        """The answers that are there, by worker."""
        return {
            keys.parse_result_key(info.key): info
            for info in self.bucket.list(keys.results_prefix(self.run))
        }

    def get_result(
        self,
        worker: int,
        shape: tuple[int, ...] | None = None,
        dtype: DTypeLike | None = None,
    ) -> tuple[NDArray[Any], dict[str, str]]:
        """(answer, metadata) of a worker; `CorruptObject` if length, shape or dtype differ."""
        key = keys.result_key(self.run, worker)
        body, metadata = self.bucket.get_object(key)
        return arrays.located(self.bucket, key, body, shape, dtype), metadata

    def put_part(
        self,
        worker: int,
        first: int,
        last: int,
        answers: NDArray[Any],
        metadata: Mapping[str, str],
    ) -> bool:
        """Write a worker's answers to its tasks `first` to `last`, one below the other, unless
        they are there."""
        key = keys.part_key(self.run, worker, first, last)
        return arrays.put_array(self.bucket, key, answers, metadata=metadata, if_none_match=True)

    def list_parts(self) -> dict[tuple[int, int, int], ObjectInfo]:
        """The answers of several tasks that are there, by (worker, first task, last task)."""
        return {
            keys.parse_part_key(info.key): info
            for info in self.bucket.list(keys.results_prefix(self.run))
        }

    def delete_results(self, workers: list[int]) -> int:
        """Delete answers that were found invalid, so that another attempt can write them."""
        return self.bucket.delete(keys.result_key(self.run, worker) for worker in workers)

    def put_error(self, record: ErrorRecord) -> None:
        """Write the error record of a worker's attempt."""
        key = keys.error_key(self.run, record.worker, record.attempt)
        self.bucket.put(key, documents.dump(record.to_json()), content_type=JSON)

    def list_errors(self) -> dict[tuple[int, int], ObjectInfo]:
        """The error records that are there, by (worker, attempt)."""
        return {
            keys.parse_error_key(info.key): info
            for info in self.bucket.list(keys.errors_prefix(self.run))
        }

    def get_error(self, worker: int, attempt: int) -> ErrorRecord:
        """Read the error record of a worker's attempt."""
        body = self.bucket.get(keys.error_key(self.run, worker, attempt))
        return ErrorRecord.from_json(documents.parse(body, "error record", RunRecordError))

    def put_stop(self, attempt: int) -> None:
        """Tell the workers of an attempt not to start."""
        self.bucket.put(keys.stop_key(self.run, attempt), b"stop\n")

    def stopped(self, attempt: int) -> bool:
        """Whether the attempt's stop marker is there (by listing: one that may not exist is
        answered 404 or 403 to a HEAD, depending on the policy)."""
        marker = keys.stop_key(self.run, attempt)
        return any(info.key == marker for info in self.bucket.list(keys.stop_prefix(self.run)))

    def put_status(self, status: RunStatus) -> None:
        """Write how far the run is, over what was there."""
        body = documents.dump(status.to_json())
        self.bucket.put(keys.status_key(self.run), body, content_type=JSON)

    def get_status(self) -> RunStatus:
        """How far the run is; raises `ObjectMissing` before the first status."""
        body = self.bucket.get(keys.status_key(self.run))
        return RunStatus.from_json(documents.parse(body, "status.json", RunRecordError))

    def put_estimate(self, estimate: NDArray[Any]) -> None:
        """Publish an estimate, over the one that is there."""
        arrays.put_array(self.bucket, keys.estimate_key(self.run), estimate)

    def get_estimate(self) -> NDArray[Any]:
        """The latest published estimate; raises `ObjectMissing` if there is none."""
        return arrays.get_array(self.bucket, keys.estimate_key(self.run))

    def put_final(self, result: NDArray[Any]) -> str:
        """Write the result; its key."""
        key = keys.final_result_key(self.run)
        arrays.put_array(self.bucket, key, result)
        return key

    def get_final(self) -> NDArray[Any]:
        """The result; raises `ObjectMissing` if there is none yet."""
        return arrays.get_array(self.bucket, keys.final_result_key(self.run))

    def put_report(self, report: Mapping[str, Any] | str) -> str:
        """Write the report, a JSON document or an HTML page; its key."""
        if isinstance(report, str):
            key = keys.report_key(self.run, "html")
            self.bucket.put(key, report.encode(), content_type="text/html; charset=utf-8")
        else:
            key = keys.report_key(self.run, "json")
            self.bucket.put(key, documents.dump(report), content_type=JSON)
        return key

    def get_report(self) -> dict[str, Any]:
        """The report; raises `ObjectMissing` if there is none yet."""
        body = self.bucket.get(keys.report_key(self.run, "json"))
        report = documents.parse(body, "report.json", RunRecordError)
        if not isinstance(report, dict):
            raise RunRecordError("report.json: must be a JSON object")
        return report


def list_runs(bucket: Bucket) -> Iterator[str]:
    """The ids of all runs, oldest first."""
    for run in bucket.folders(keys.RUNS):
        if keys.is_run(run):
            yield run


def delete_run(bucket: Bucket, run: str) -> int:
    """Delete everything of a run; the number of objects deleted. Raises `ObjectMissing`."""
    keys.validate_run(run)
    count = bucket.delete_prefix(keys.run_prefix(run))
    if count == 0:
        raise ObjectMissing(f"there is no run {run} in s3://{bucket.name}: nothing to delete")
    return count
