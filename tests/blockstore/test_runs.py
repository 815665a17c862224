from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest

from blockstore import documents, keys
from blockstore.bucket import Bucket
from blockstore.errors import CorruptObject, NameRefused, ObjectMissing, RunRecordError
from blockstore.runs import ErrorRecord, RunSpec, RunStatus, RunStore, delete_run, list_runs

RUN = keys.new_run_id(1_700_000_000_000, bytes(range(10)))


def spec(**changes: Any) -> RunSpec:
    fields: dict[str, Any] = {
        "run": RUN,
        "created": "2025-01-01T00:00:00+00:00",
        "matrix": "m",
        "manifest_digest": "sha256:1",
        "encoding": "0123456789abcdef",
        "workers": 8,
        "x_shape": (5, 2),
        "x_dtype": "<f8",
        "x_digest": "sha256:2",
        "until": "exact",
        "deadline": 30.0,
    }
    return RunSpec(**(fields | changes))


STATUS = RunStatus(run=RUN, state="running", arrivals=3, workers=8, error=0.5, cost={"total": 1.0})
ERROR = ErrorRecord(
    worker=3, attempt=1, type="CorruptObject", message="short", where="tile 0", fatal=False
)


@pytest.fixture
def store(bucket: Bucket) -> RunStore:
    return RunStore(bucket, RUN)


def test_what_was_asked_is_kept(store: RunStore) -> None:
    with pytest.raises(ObjectMissing, match=RUN):
        store.load_spec()
    for asked in (spec(), spec(deadline=None), spec(decisive=(3, 1, 2), attempt=2)):
        store.save_spec(asked)
        assert store.load_spec() == asked


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(RunSpec)])
def test_a_missing_field_of_run_json_is_named(field: str) -> None:
    document = json.loads(documents.dump(spec().to_json()))
    del document[field]
    with pytest.raises(RunRecordError, match=field):
        RunSpec.from_json(document)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("decisive", [8]),
        ("decisive", [-1]),
        ("decisive", 3),
        ("run", "x"),
        ("x_shape", [0]),
        ("deadline", "soon"),
        ("attempt", 0),
        ("version", 2),
    ],
)
def test_a_wrong_field_of_run_json_is_refused(field: str, value: object) -> None:
    document = json.loads(documents.dump(spec().to_json())) | {field: value}
    with pytest.raises(RunRecordError, match=field):
        RunSpec.from_json(document)


def test_status_round_trip_and_infinity_is_none(store: RunStore) -> None:
    store.put_status(STATUS)
    assert store.get_status() == STATUS
    store.put_status(dataclasses.replace(STATUS, error=math.inf, error_upper=math.nan))
    assert store.get_status().error is None
    assert store.get_status().error_upper is None
    with pytest.raises(RunRecordError, match="state"):
        RunStatus.from_json(STATUS.to_json() | {"state": "lost"})


def test_the_first_answer_of_a_worker_wins(store: RunStore) -> None:
    first, second = np.arange(4.0), np.arange(4.0) + 1
    assert store.put_result(3, first, {"x-digest": "d", "attempt": "1"})
    assert not store.put_result(3, second, {"attempt": "2"})
    answer, metadata = store.get_result(3, (4,), "f8")
    np.testing.assert_array_equal(answer, first)
    assert metadata == {"x-digest": "d", "attempt": "1"}
    assert list(store.list_results()) == [3]
    assert store.list_results()[3].size == len(b"") + 128 + 32
    with pytest.raises(CorruptObject, match="00003"):
        store.get_result(3, (5,), "f8")
    assert store.delete_results([3]) == 1
    assert store.list_results() == {}


def test_more_answers_than_a_page_are_all_listed(store: RunStore) -> None:
    from moto.core import DEFAULT_ACCOUNT_ID
    from moto.s3.models import s3_backends

    backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
    for worker in range(1024):
        backend.put_object(store.bucket.name, keys.result_key(RUN, worker), b"x")
    assert list(store.list_results()) == list(range(1024))


def test_errors_are_kept_by_worker_and_attempt(store: RunStore) -> None:
    store.put_error(ERROR)
    store.put_error(dataclasses.replace(ERROR, attempt=2, fatal=True))
    assert list(store.list_errors()) == [(3, 1), (3, 2)]
    assert store.get_error(3, 1) == ERROR
    assert store.get_error(3, 2).fatal


def test_stop_markers_are_of_one_attempt(store: RunStore) -> None:
    assert not store.stopped(1)
    store.put_stop(12)
    assert not store.stopped(1) and not store.stopped(2) and store.stopped(12)
    store.put_stop(1)
    assert store.stopped(1)


def test_arrays_and_reports_come_back(store: RunStore) -> None:
    a = np.arange(6, dtype="f4").reshape(3, 2)
    store.save_x(a)
    store.put_estimate(a + 1)
    assert store.put_final(a + 2) == keys.final_result_key(RUN)
    np.testing.assert_array_equal(store.load_x(shape=(3, 2), dtype="f4"), a)
    np.testing.assert_array_equal(store.get_estimate(), a + 1)
    np.testing.assert_array_equal(store.get_final(), a + 2)
    store.put_report({"seconds": 1.5})
    store.put_report("<html></html>")
    assert store.get_report() == {"seconds": 1.5}
    assert store.bucket.get(keys.report_key(RUN, "html")) == b"<html></html>"
    with pytest.raises(ValueError):
        store.put_report({"error": math.nan})


def test_damaged_records_are_typed_errors(store: RunStore) -> None:
    for key, read in (
        (keys.run_key(RUN), store.load_spec),
        (keys.status_key(RUN), store.get_status),
        (keys.report_key(RUN, "json"), store.get_report),
        (keys.error_key(RUN, 3, 1), lambda: store.get_error(3, 1)),
    ):
        for body in (b"", b"{", b"[]", b"null"):
            store.bucket.put(key, body)
            with pytest.raises(RunRecordError):
                read()


def test_runs_are_listed_oldest_first_and_deleted_whole(bucket: Bucket) -> None:
    runs = [keys.new_run_id(now, bytes(10)) for now in (3000, 1000, 2000)]
    for run in runs:
        store = RunStore(bucket, run)
        store.save_spec(spec(run=run))
        store.put_stop(1)
    bucket.put("runs/something-else/file", b"")
    assert list(list_runs(bucket)) == [runs[1], runs[2], runs[0]]
    assert delete_run(bucket, runs[2]) == 2
    assert list(list_runs(bucket)) == [runs[1], runs[0]]
    with pytest.raises(ObjectMissing, match=runs[2]):
        delete_run(bucket, runs[2])
    with pytest.raises(NameRefused):
        delete_run(bucket, "")
    with pytest.raises(NameRefused):
        RunStore(bucket, "../x")
