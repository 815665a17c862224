"""The worker of a matrix product: two coded blocks in any tiling, in bounded memory."""

from __future__ import annotations

import numpy as np
import pytest

from blockstore import keys, pair_tasks
from blockstore.arrays import decode_array, encode_array
from functions.worker import app, pair
from functions.worker.faults import OutOfTime
from functions.worker.pair import multiply_pair
from tests.functions.coded_block import RUN, Context
from tests.functions.coded_pair import PairOfBlocks, make_pair

SHAPES = [(7, 23), (9, 23)]


@pytest.fixture
def rng():
    return np.random.default_rng(6)


def numbers(rng, shape, dtype):
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(-30_000, 30_000, shape).astype(dtype)


def handle(monkeypatch, made: PairOfBlocks, seconds: float = 300.0, event=None):
    monkeypatch.setattr(app, "_bucket", made.bucket)
    return app.handler(made.task.to_event() if event is None else event, Context(seconds))


@pytest.mark.parametrize("band", [1 << 20, 1000, 300], ids=["whole", "bands", "rows"])
@pytest.mark.parametrize("left", [(7, 23), (7, 5), (3, 23), (1, 10)])
@pytest.mark.parametrize("right", [(9, 23), (9, 4), (2, 23), (1, 7)])
@pytest.mark.parametrize("dtypes", [("<f8", "<f8"), ("<f4", "<f4"), ("<i2", "<i2"), ("<i2", "<f4")])
def test_the_product_is_numpys_and_reads_what_was_planned(
    rng, monkeypatch, band, left, right, dtypes
):
    monkeypatch.setattr(pair_tasks, "BAND_BYTES", band)
    monkeypatch.setattr(pair, "PAIR_PIECE_BYTES", 200)
    A, B = (numbers(rng, shape, dtype) for shape, dtype in zip(SHAPES, dtypes, strict=True))
    made = make_pair(A, B, left, right)
    product = multiply_pair(made.store, made.task, lambda: 60.0)
    wanted = A.astype("f8") @ B.astype("f8").T
    single = "<f4" in dtypes
    assert product.value.dtype == (np.float32 if single else np.float64)
    close = (1e-6 if single else 1e-14) * np.abs(wanted).max()
    np.testing.assert_allclose(product.value, wanted, atol=close)
    if dtypes == ("<i2", "<i2"):
        assert np.array_equal(product.value, wanted)  # exact: integers never wrap
    assert made.gets == made.task.tiles_read
    rows = [np.sqrt(np.mean(np.sum(m.astype("f8") ** 2, axis=1))) for m in (A, B)]
    assert product.scale == pytest.approx(rows[0] * rows[1], rel=1e-5)


def test_the_handler_writes_the_answer_once_whatever_comes_second(rng, monkeypatch):
    made = make_pair(*(numbers(rng, shape, "<f8") for shape in SHAPES), (7, 23), (9, 23))
    assert handle(monkeypatch, made)["state"] == "answered"
    body, metadata = made.bucket.get_object(keys.result_key(RUN, 14))
    assert decode_array(body).shape == (7, 9)
    assert metadata["encoding"] == made.task.encoding and metadata["x-digest"] == "sha256:b"
    assert handle(monkeypatch, made)["state"] == "late"


def test_a_stopped_run_is_not_begun_and_no_tile_is_read(rng, monkeypatch):
    made = make_pair(*(numbers(rng, shape, "<f8") for shape in SHAPES), (7, 23), (9, 23))
    made.store.put_stop(1)
    assert handle(monkeypatch, made)["state"] == "stopped"
    assert made.gets == 0


@pytest.mark.parametrize(
    ("what", "kind", "fatal"),
    [
        ("missing", "TileMissing", False),
        ("cut", "CorruptObject", False),
        ("shape", "WrongShape", True),
        ("large", "NotFinite", True),
    ],
)
def test_failures_are_records_with_their_kind(rng, monkeypatch, what, kind, fatal):
    A, B = (numbers(rng, shape, "<f8") for shape in SHAPES)
    if what == "large":
        A *= 1e200
        B *= 1e200
    made = make_pair(A, B, (7, 23), (9, 23))
    key = made.task.right.tile_key(0)
    if what == "missing":
        made.bucket.delete([key])
    elif what == "cut":
        made.bucket.objects[key].body = made.bucket.objects[key].body[:-8]
    elif what == "shape":
        made.bucket.put(key, encode_array(B[:-1]))
    assert handle(monkeypatch, made)["state"] == "failed"
    record = made.store.get_error(14, 1)
    assert (record.type, record.fatal) == (kind, fatal)


def test_it_ends_before_its_time_limit(rng):
    made = make_pair(*(numbers(rng, shape, "<f8") for shape in SHAPES), (7, 5), (9, 5))
    with pytest.raises(OutOfTime):
        multiply_pair(made.store, made.task, lambda: 1.0)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"columns": 0}, "columns"),
        ({"worker": 99}, "worker"),
        ({"right": {}}, "right"),
        ({"encoding": "x"}, "encoding"),
        ({"version": 2}, "version"),
    ],
)
def test_events_that_are_no_task_are_refused(rng, monkeypatch, change, word):
    made = make_pair(*(numbers(rng, shape, "<f8") for shape in SHAPES), (7, 23), (9, 23))
    answer = handle(monkeypatch, made, event={**made.task.to_event(), **change})
    assert answer["state"] == "refused" and word in answer["error"]["message"]
