"""A worker with several tasks: in order, each answer at once, nothing begun after the marker."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from blockstore import keys
from blockstore.arrays import array_digest, encode_array
from blockstore.errors import TaskRefused
from blockstore.runs import RunStore
from blockstore.tasks import WorkerTask
from functions.worker import app
from tests.functions.coded_block import ENCODING, RUN, Context
from tests.memory_bucket import MemoryBucket

R, ROWS, COLUMNS = 4, 3, 20


@dataclass
class Share:
    bucket: MemoryBucket
    task: WorkerTask
    products: np.ndarray  # (R, ROWS)

    @property
    def store(self) -> RunStore:
        return RunStore(self.bucket, RUN)  # type: ignore[arg-type]

    def part(self, first: int, last: int) -> np.ndarray:
        key = keys.part_key(RUN, 3, first, last)
        return np.load(_file(self.bucket.objects[key].body))

    def tiles_read(self) -> list[int]:
        return [keys.parse_tile_key(key)[0] for kind, key in self.bucket.requests if "coded" in key]


def _file(body):
    import io

    return io.BytesIO(body)


@pytest.fixture
def share(monkeypatch) -> Share:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(COLUMNS)
    blocks = rng.standard_normal((R, ROWS, COLUMNS))
    task = WorkerTask(
        run=RUN,
        attempt=1,
        worker=3,
        workers=8,
        matrix="photos",
        encoding=ENCODING,
        block_rows=ROWS,
        columns=COLUMNS,
        tile_rows=ROWS,
        tile_columns=10,
        dtype="<f8",
        x_shape=x.shape,
        x_dtype="<f8",
        x_digest=array_digest(x),
        subtasks=R,
    )
    made = Share(MemoryBucket(), task, blocks @ x)
    made.store.save_x(x)
    for number, block in enumerate(blocks):
        for tile in range(2):
            part = np.ascontiguousarray(block[:, tile * 10 : tile * 10 + 10])
            made.bucket.put(task.tile_key(tile, number), encode_array(part))
    made.bucket.requests.clear()
    monkeypatch.setattr(app, "_bucket", made.bucket)
    return made


def handle(task: WorkerTask, seconds: float = 300.0):
    return app.handler(task.to_event(), Context(seconds))


@pytest.mark.parametrize("per_object", [1, 2, 4])
def test_every_answer_is_put_when_it_is_done(share, per_object):
    task = replace(share.task, per_object=per_object)
    assert handle(task)["state"] == "answered"
    assert share.tiles_read() == [12, 12, 13, 13, 14, 14, 15, 15]
    for first, last in task.objects:
        expected = share.products[first : last + 1].ravel()
        np.testing.assert_allclose(share.part(first, last), expected, rtol=1e-12)
    kinds = [kind for kind, key in share.bucket.requests if "results" in key or "coded" in key]
    assert kinds == (["get"] * 2 * per_object + ["put"]) * (R // per_object)
    assert [key for _, key in share.bucket.requests].count(keys.x_key(RUN)) == 1
    assert handle(task)["state"] == "late"


def test_nothing_is_computed_after_the_marker_but_the_task_in_hand(share):
    marker = keys.stop_key(RUN, 1)

    def stop_in_the_second_task(kind, key):
        if "coded" in key and keys.parse_tile_key(key)[0] == 13:
            share.bucket.objects.setdefault(marker, share.bucket.objects[keys.x_key(RUN)])

    share.bucket.before = stop_in_the_second_task
    assert handle(share.task)["state"] == "stopped"
    assert sorted(share.store.list_parts()) == [(3, 0, 0), (3, 1, 1)]
    assert set(share.tiles_read()) == {12, 13}
    assert not share.store.list_errors()


def test_only_what_is_missing_is_done(share):
    task = replace(share.task, todo=(1, 3))
    assert handle(task)["state"] == "answered"
    assert sorted(share.store.list_parts()) == [(3, 1, 1), (3, 3, 3)]
    grouped = replace(share.task, per_object=2, todo=(2, 3), attempt=2)
    assert grouped.objects == ((2, 3),)


def test_a_missing_tile_costs_its_own_answer_and_is_reported_last(share):
    del share.bucket.objects[share.task.tile_key(1, 1)]
    assert handle(share.task)["state"] == "failed"
    assert sorted(share.store.list_parts()) == [(3, 0, 0), (3, 2, 2), (3, 3, 3)]
    record = share.store.get_error(3, 1)
    assert (record.type, record.fatal) == ("TileMissing", False) and "block 13" in record.message


def test_near_the_time_limit_what_is_done_is_there(share):
    class Ending(Context):
        def get_remaining_time_in_millis(self) -> int:
            return 300_000 if not share.store.list_parts() else 1_000

    assert app.handler(share.task.to_event(), Ending())["state"] == "failed"
    assert sorted(share.store.list_parts()) == [(3, 0, 0)]
    assert share.store.get_error(3, 1).type == "OutOfTime"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("subtasks", 0),
        ("subtasks", 65),
        ("per_object", 3),
        ("todo", [4]),
        ("todo", [1, 1]),
        ("todo", [2, 1]),
        ("todo", "all"),
    ],
)
def test_a_bad_event_is_refused_before_anything_is_read(share, name, value):
    event = {**share.task.to_event(), name: value}
    with pytest.raises(TaskRefused, match=name):
        WorkerTask.from_event(event)
    assert app.handler(event, Context())["state"] == "refused"
    assert share.bucket.requests == []


def test_events_say_no_more_than_they_need(share):
    one = replace(share.task, subtasks=1).to_event()
    assert not {"subtasks", "per_object", "todo"} & set(one)
    worst = replace(
        share.task, subtasks=64, todo=tuple(range(63)), matrix="m" * 100, workers=4096
    ).to_event()
    assert len(str(worst).encode()) < 1024
    assert WorkerTask.from_event(worst).todo == tuple(range(63))
