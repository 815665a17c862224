from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

from blockstore import keys
from blockstore.errors import TaskRefused
from blockstore.tasks import WorkerTask, compute_dtype
from blockstore.tiling import Tiling

RUN = keys.new_run_id(1_700_000_000_000, bytes(range(10)))


def task(**changes: Any) -> WorkerTask:
    fields: dict[str, Any] = {
        "run": RUN,
        "attempt": 1,
        "worker": 3,
        "workers": 64,
        "matrix": "m",
        "encoding": "0123456789abcdef",
        "block_rows": 100,
        "columns": 40,
        "tile_rows": 30,
        "tile_columns": 40,
        "dtype": "<i2",
        "x_shape": (40, 2),
        "x_dtype": "<f8",
        "x_digest": "sha256:" + "0" * 64,
    }
    return WorkerTask(**(fields | changes))


def test_event_round_trip_through_json() -> None:
    t = task()
    assert WorkerTask.from_event(json.loads(json.dumps(t.to_event()))) == t
    assert WorkerTask.from_event(t.to_event() | {"sent": 1.5}).sent == 1.5
    assert t.tiling == Tiling(100, 40, 30, 40)
    assert t.result_shape == (100, 2) and t.result_dtype == np.float64
    assert task(x_shape=(40,)).result_shape == (100,)
    assert t.tile_key(2) == "matrices/m/coded/0123456789abcdef/00003/0002.npy"


def test_the_largest_event_is_below_1_kb() -> None:
    large = 10**12
    event = task(
        matrix="m" * keys.MAX_NAME,
        attempt=1000,
        worker=65535,
        workers=65536,
        block_rows=large,
        columns=large,
        tile_rows=large,
        tile_columns=large,
        x_shape=(large, 100_000),
    ).to_event()
    assert len(json.dumps(event | {"sent": 1_800_000_000.123})) < 1024


def test_several_tasks_come_with_results_per_object() -> None:
    several = task(subtasks=4, per_object=2, todo=(1, 3))
    event = several.to_event()
    assert WorkerTask.from_event(event) == several
    del event["per_object"]
    with pytest.raises(TaskRefused, match="per_object"):
        WorkerTask.from_event(event)


SEVERAL = {"subtasks", "per_object", "todo"}  # left out where a worker has one task


@pytest.mark.parametrize(
    "field", sorted({f.name for f in dataclasses.fields(WorkerTask)} - SEVERAL - {"sent"})
)
def test_a_missing_field_is_named(field: str) -> None:
    event = task().to_event()
    del event[field]
    with pytest.raises(TaskRefused, match=field):
        WorkerTask.from_event(event)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("version", 2),
        ("run", "x"),
        ("run", 3),
        ("attempt", -1),
        ("worker", 64),
        ("worker", True),
        ("workers", 0),
        ("matrix", "../m"),
        ("encoding", "a/b"),
        ("block_rows", 0),
        ("tile_rows", 101),
        ("tile_columns", 41),
        ("dtype", "O"),
        ("dtype", "nonsense"),
        ("x_dtype", "c8"),
        ("x_shape", [41]),
        ("x_shape", [40, 2, 2]),
        ("x_shape", []),
        ("x_shape", [40, 0]),
        ("x_shape", 40),
        ("x_digest", None),
        ("sent", "now"),
    ],
)
def test_a_wrong_field_is_a_typed_refusal(field: str, value: object) -> None:
    with pytest.raises(TaskRefused):
        WorkerTask.from_event(task().to_event() | {field: value})


@pytest.mark.parametrize("event", [None, [], "text", 3])
def test_an_event_that_is_not_an_object_is_a_typed_refusal(event: Any) -> None:
    with pytest.raises(TaskRefused, match="object"):
        WorkerTask.from_event(event)


@pytest.mark.parametrize(
    ("coded", "x", "expected"),
    [
        ("i2", "u1", "f4"),
        ("i2", "f4", "f4"),
        ("f4", "f2", "f4"),
        ("f4", "?", "f4"),
        ("f4", "f8", "f8"),
        ("i4", "f4", "f8"),
        ("i2", "i4", "f8"),
        ("i8", "i8", "f8"),
        ("f8", "f2", "f8"),
    ],
)
def test_products_are_taken_in_floats_that_hold_both_operands(
    coded: str, x: str, expected: str
) -> None:
    assert compute_dtype(coded, x) == np.dtype(expected)
