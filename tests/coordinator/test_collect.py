"""Taking answers in: once each, every check, through real botocore requests on moto."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from moto import mock_aws

from blockstore import keys
from blockstore.answers import AnswerMetadata
from blockstore.bucket import Bucket
from blockstore.connect import s3_client
from blockstore.errors import AccessDenied, StoreUnavailable
from blockstore.records import ErrorRecord
from blockstore.runs import RunStore
from coordinator.collect import Collector
from coordinator.form import AnswerForm
from coordinator.ports import SystemClock
from tests.coordinator.fake_platform import ENCODING, Platform
from tests.memory_bucket import MemoryBucket

RUN = keys.new_run_id(1_700_000_000_000, bytes(10))
DIGEST = "sha256:right"
GOOD = AnswerMetadata(x_digest=DIGEST, encoding=ENCODING, attempt=1, scale=2.0)
VALUE = np.arange(3, dtype="<f4")


@pytest.fixture(params=["memory", "moto"])
def store(request, monkeypatch) -> Iterator[RunStore]:
    if request.param == "memory":
        yield RunStore(MemoryBucket(), RUN)  # type: ignore[arg-type]
        return
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3", raising=False)
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    with mock_aws():
        client = s3_client()
        client.create_bucket(Bucket="blocks")
        yield RunStore(Bucket(client, "blocks", pause=0.0), RUN)


def make_collector(store: RunStore) -> Collector:
    form = AnswerForm.of(Platform().manifest, (9,), "<f4")
    return Collector(
        store,
        form,
        x_digest=DIGEST,
        encoding=ENCODING,
        workers=16,
        clock=SystemClock(),
        threads=4,
    )


@pytest.fixture
def collector(store) -> Iterator[Collector]:
    made = make_collector(store)
    yield made
    made.close()


def put(store: RunStore, worker: int, value=VALUE, metadata: AnswerMetadata = GOOD) -> None:
    assert store.put_result(worker, value, metadata.to_metadata())


def test_each_answer_is_taken_in_once(store, collector):
    assert collector.look().answers == ()
    put(store, 3)
    put(store, 12)
    found = collector.look().answers
    assert [a.worker for a in found] == [3, 12]
    np.testing.assert_array_equal(found[0].value, VALUE)
    assert found[0].metadata == GOOD
    put(store, 4)
    assert [a.worker for a in collector.look().answers] == [4]
    assert collector.look().answers == ()


def test_errors_and_stop_markers_come_with_the_same_listing(store, collector):
    record = ErrorRecord(
        worker=2, attempt=1, type="OutOfTime", message="m", where="product", fatal=False
    )
    store.put_error(record)
    store.put_stop(1)
    found = collector.look()
    assert found.failures == (record,) and found.stops == {1} and not found.rejected
    again = collector.look()
    assert again.failures == () and again.stops == {1}


@pytest.mark.parametrize(
    ("value", "metadata", "kind", "fatal"),
    [
        (VALUE[:2], GOOD, "WrongShape", True),
        (VALUE.reshape(3, 1), GOOD, "WrongShape", True),
        (VALUE.astype("<f8"), GOOD, "WrongShape", True),
        (np.array([1, np.nan, 2], "<f4"), GOOD, "NotFinite", True),
        (np.array([1, np.inf, 2], "<f4"), GOOD, "NotFinite", True),
        (VALUE, AnswerMetadata(x_digest="sha256:x", encoding=ENCODING), "WrongInput", True),
        (VALUE, AnswerMetadata(x_digest=DIGEST, encoding="f" * 16), "WrongInput", True),
        (VALUE, None, "WrongInput", True),
    ],
)
def test_an_answer_that_fails_a_check_is_shown_and_does_not_count(
    memory, value, metadata, kind, fatal
):
    bucket, collector = memory
    collector.look()
    store = RunStore(bucket, RUN)
    store.put_result(5, value, metadata.to_metadata() if metadata else {})
    found = collector.look()
    assert found.answers == () and found.rejected == {5}
    assert (found.failures[0].type, found.failures[0].fatal) == (kind, fatal)
    assert collector.look().failures == ()


def test_a_damaged_object_is_an_erasure_and_makes_room_for_another_attempt(store, collector):
    key = keys.result_key(RUN, 5)
    store.bucket.put(key, b"\x93NUMPY half of it", metadata=GOOD.to_metadata())
    found = collector.look()
    assert found.failures[0].type == "CorruptObject" and not found.failures[0].fatal
    collector.discard(found.rejected)
    put(store, 5)
    assert [a.worker for a in collector.look().answers] == [5]


def test_foreign_objects_and_workers_that_do_not_exist_are_left_alone(store, collector):
    for name in ("results/latest.npy", "errors/none.json", "stop.soon", "results/00016.npy", "x"):
        store.bucket.put(keys.run_prefix(RUN) + name, b"?")
    found = collector.look()
    assert found.answers == () and found.failures == () and found.stops == frozenset()


def test_a_damaged_error_record_is_shown_as_one(store, collector):
    store.bucket.put(keys.error_key(RUN, 3, 1), b"{")
    (failure,) = collector.look().failures
    assert (failure.worker, failure.type) == (3, "RunRecordError")


def test_with_only_nobody_elses_answer_is_fetched(store, collector):
    put(store, 3)
    put(store, 4)
    assert [a.worker for a in collector.look(only=[4]).answers] == [4]


def flaky(bucket: MemoryBucket, failures: int, error: Exception) -> None:
    left = failures

    def before(kind, key):
        nonlocal left
        if kind == "get" and left:
            left -= 1
            raise error

    bucket.before = before


@pytest.fixture
def memory():
    bucket = MemoryBucket()
    store = RunStore(bucket, RUN)  # type: ignore[arg-type]
    made = make_collector(store)
    put(store, 3)
    yield bucket, made
    made.close()


def test_an_answer_that_cannot_be_read_now_is_read_at_the_next_look(memory):
    bucket, collector = memory
    flaky(bucket, 2, StoreUnavailable("busy"))
    assert collector.look().answers == () and collector.look().answers == ()
    assert [a.worker for a in collector.look().answers] == [3]


def test_an_answer_that_stays_unreadable_is_an_erasure(memory):
    bucket, collector = memory
    flaky(bucket, 3, StoreUnavailable("busy"))
    looks = [collector.look() for _ in range(3)]
    assert [len(look.failures) for look in looks] == [0, 0, 1]
    assert looks[2].failures[0].type == "StoreUnavailable" and not looks[2].failures[0].fatal


def test_a_permission_that_is_missing_is_never_an_erasure(memory):
    bucket, collector = memory
    flaky(bucket, 1, AccessDenied("not allowed"))
    with pytest.raises(AccessDenied):
        collector.look()
