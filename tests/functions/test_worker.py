"""The worker: right products in every dtype and tiling, idempotent, typed failures."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import numpy as np
import pytest

from blockstore import keys
from blockstore.answers import AnswerMetadata
from blockstore.arrays import decode_array, encode_array
from blockstore.errors import AccessDenied, StoreUnavailable
from blockstore.runs import RunStore
from functions.worker import app, one
from functions.worker.faults import RunStopped
from functions.worker.product import multiply
from functions.worker.settings import SettingsError, WorkerSettings
from tests.functions.coded_block import RUN, Block, Context, make_block


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def numbers(rng, shape, dtype):
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(-100, 100, shape).astype(dtype)


def handle(monkeypatch, made: Block, event=None, seconds: float = 300.0):
    monkeypatch.setattr(app, "_bucket", made.bucket)
    return app.handler(made.task.to_event() if event is None else event, Context(seconds))


@pytest.mark.parametrize("dtype", ["<i2", "<i4", "<i8", "<f4", "<f8"])
@pytest.mark.parametrize("columns", [(), (1,), (3,)])
@pytest.mark.parametrize(("tile", "order"), [((7, 50), "C"), ((3, 50), "C"), ((7, 11), "F")])
def test_the_product_is_numpys(rng, dtype, columns, tile, order):
    block = numbers(rng, (7, 50), dtype)
    x = numbers(rng, (50, *columns), "<f4")
    made = make_block(block, x, tile, order=order)
    product = multiply(made.store, made.task, lambda: 60.0)
    expected = block.astype("f8") @ x.astype("f8")
    wide = np.dtype(dtype).itemsize >= 4 and dtype != "<f4"
    assert product.value.dtype == ("f8" if wide else "f4")
    assert product.value.shape == expected.shape
    scale = np.linalg.norm(block.astype("f8")) * np.linalg.norm(x)
    assert np.abs(product.value - expected).max() <= (1e-14 if wide else 3e-7) * scale
    rows = np.linalg.norm(block.astype("f8"), axis=1)
    k = columns[0] if columns else 1
    assert product.scale == pytest.approx(
        np.sqrt((rows**2).mean()) * np.linalg.norm(x) / np.sqrt(k), rel=1e-5
    )


def test_pieces_smaller_than_a_tile_add_up(rng, monkeypatch):
    monkeypatch.setattr("functions.worker.product.PIECE_BYTES", 256)
    for order in "CF":
        block = numbers(rng, (40, 60), "<i2")
        x = numbers(rng, (60, 2), "<f8")
        made = make_block(block, x, (40, 60), order=order)
        product = multiply(made.store, made.task, lambda: 60.0)
        np.testing.assert_allclose(product.value, block.astype("f8") @ x, rtol=1e-12)


def test_an_answer_carries_its_digests_and_figures(rng, monkeypatch):
    made = make_block(numbers(rng, (7, 50), "<i2"), numbers(rng, (50,), "<f4"), (3, 50))
    assert handle(monkeypatch, made)["state"] == "answered"
    value, metadata = made.store.get_result(3, made.task.result_shape, made.task.result_dtype)
    assert value.shape == (7,)
    figures = AnswerMetadata.from_metadata(metadata)
    assert (figures.x_digest, figures.encoding) == (made.task.x_digest, made.task.encoding)
    assert figures.attempt == 1 and not figures.cold
    assert figures.peak_memory > 1 << 20 and figures.scale > 0


def test_a_worker_that_runs_twice_leaves_the_same_object(rng, monkeypatch):
    made = make_block(numbers(rng, (7, 50), "<f4"), numbers(rng, (50,), "<f4"), (3, 50))
    assert handle(monkeypatch, made)["state"] == "answered"
    before = made.bucket.objects[keys.result_key(RUN, 3)]
    again = replace(made.task, attempt=2).to_event()
    assert handle(monkeypatch, made, again)["state"] == "late"
    assert made.bucket.objects[keys.result_key(RUN, 3)] is before


def test_a_worker_that_sees_the_stop_marker_does_not_start(rng, monkeypatch):
    made = make_block(numbers(rng, (7, 50), "<f4"), numbers(rng, (50,), "<f4"), (3, 50))
    made.store.put_stop(1)
    made.bucket.requests.clear()
    assert handle(monkeypatch, made)["state"] == "stopped"
    assert [kind for kind, _ in made.bucket.requests] == ["list"]
    assert handle(monkeypatch, made, replace(made.task, attempt=2).to_event())["state"] == (
        "answered"
    )


def test_a_worker_stops_within_seconds_of_the_marker(rng, monkeypatch):
    monkeypatch.setattr("functions.worker.stop.STOP_INTERVAL", -1.0)
    made = make_block(numbers(rng, (8, 50), "<f4"), numbers(rng, (50,), "<f4"), (1, 50))

    def stop_after_two_tiles(kind, key):
        if kind == "get" and key.endswith("0002.npy"):
            made.bucket.objects[keys.stop_key(RUN, 1)] = made.bucket.objects[keys.x_key(RUN)]

    made.bucket.before = stop_after_two_tiles
    with pytest.raises(RunStopped):
        multiply(made.store, made.task, lambda: 60.0)
    assert len([k for k, key in made.bucket.requests if k == "get" and "coded" in key]) < 8


def deny(bucket):
    def before(kind, key):
        if "coded" in key:
            raise AccessDenied("not allowed")

    bucket.before = before


def unavailable(bucket):
    def before(kind, key):
        if "coded" in key:
            raise StoreUnavailable("busy")

    bucket.before = before


def overwrite(tile, body):
    def change(bucket):
        key = next(k for k in bucket.objects if k.endswith(f"{tile:04d}.npy"))
        stored = bucket.objects[key]
        stored.body = body(stored.body)

    return change


def lose_tile(bucket):
    del bucket.objects[next(k for k in bucket.objects if k.endswith("0001.npy"))]


def exchange_x(bucket):
    bucket.objects[keys.x_key(RUN)].body = encode_array(np.ones(50, "<f4"))


def lose_x(bucket):
    del bucket.objects[keys.x_key(RUN)]


def no_memory(bucket):
    def before(kind, key):
        if "coded" in key:
            raise MemoryError

    bucket.before = before


@pytest.mark.parametrize(
    ("damage", "kind", "fatal"),
    [
        (deny, "AccessDenied", True),
        (unavailable, "StoreUnavailable", False),
        (lose_tile, "TileMissing", False),
        (overwrite(1, lambda body: body[:-1]), "CorruptObject", False),
        (overwrite(1, lambda _: b"not an array at all"), "CorruptObject", False),
        (overwrite(1, lambda _: encode_array(np.ones((2, 50), "<f4"))), "WrongShape", True),
        (overwrite(1, lambda _: encode_array(np.ones((3, 50), "<f8"))), "WrongShape", True),
        (overwrite(1, lambda _: encode_array(np.full((3, 50), np.nan, "<f4"))), "NotFinite", True),
        (overwrite(1, lambda _: encode_array(np.full((3, 50), 1e38, "<f4"))), "NotFinite", True),
        (exchange_x, "WrongInput", True),
        (lose_x, "ObjectMissing", True),
        (no_memory, "MemoryError", False),
    ],
)
def test_every_failure_is_a_typed_record(rng, monkeypatch, damage, kind, fatal):
    made = make_block(numbers(rng, (7, 50), "<f4"), np.full(50, 100, "<f4"), (3, 50))
    damage(made.bucket)
    assert handle(monkeypatch, made)["state"] == "failed"
    record = made.store.get_error(3, 1)
    assert (record.type, record.fatal, record.attempt) == (kind, fatal, 1)
    assert keys.result_key(RUN, 3) not in made.bucket.objects


def test_near_the_time_limit_a_worker_says_so_instead_of_being_killed(rng, monkeypatch):
    made = make_block(numbers(rng, (7, 50), "<f4"), numbers(rng, (50,), "<f4"), (3, 50))
    assert handle(monkeypatch, made, seconds=1.0)["state"] == "failed"
    assert made.store.get_error(3, 1).type == "OutOfTime"
    assert not made.store.get_error(3, 1).fatal


def test_an_unforeseen_error_is_recorded_and_raised(rng, monkeypatch):
    made = make_block(numbers(rng, (7, 50), "<f4"), numbers(rng, (50,), "<f4"), (3, 50))

    def explode(store, task, time_left, inputs):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(one, "multiply", explode)
    with pytest.raises(ZeroDivisionError):
        handle(monkeypatch, made)
    assert made.store.get_error(3, 1).type == "ZeroDivisionError"
    assert made.store.get_error(3, 1).fatal


@pytest.mark.parametrize(
    "change",
    [{"worker": 8}, {"version": 2}, {"x_shape": [49]}, {"dtype": "O"}, {"run": "../x"}, None],
)
def test_a_bad_event_is_refused_before_anything_is_read(rng, monkeypatch, change):
    made = make_block(numbers(rng, (7, 50), "<f4"), numbers(rng, (50,), "<f4"), (3, 50))
    event = {} if change is None else {**made.task.to_event(), **change}
    answer = handle(monkeypatch, made, event)
    assert answer["state"] == "refused" and answer["error"]["type"] == "TaskRefused"
    assert made.bucket.requests == []


def test_the_log_is_one_json_line_with_run_worker_attempt_and_times(rng, monkeypatch, capsys):
    made = make_block(numbers(rng, (7, 50), "<f4"), numbers(rng, (50,), "<f4"), (3, 50))
    handle(monkeypatch, made)
    (text,) = capsys.readouterr().out.splitlines()
    logged = json.loads(text)
    assert (logged["run"], logged["worker"], logged["attempt"]) == (RUN, 3, 1)
    assert {"seconds-read", "seconds-multiply", "seconds-total"} <= set(logged)


def test_settings_name_the_variable_that_is_missing():
    with pytest.raises(SettingsError, match="POLARLAMBDA_BUCKET"):
        WorkerSettings.read({})


def test_an_event_stays_below_one_kilobyte(rng):
    made = make_block(numbers(rng, (7, 50), "<f4"), numbers(rng, (50,), "<f4"), (3, 50))
    event = replace(made.task, matrix="m" * 100, block_rows=10**7, workers=4096).to_event()
    assert len(json.dumps(event)) < 1024


def test_answers_are_plain_npy(rng, monkeypatch):
    made = make_block(numbers(rng, (7, 50), "<f4"), numbers(rng, (50, 2), "<f4"), (3, 50))
    handle(monkeypatch, made)
    body = made.bucket.objects[keys.result_key(RUN, 3)].body
    np.testing.assert_array_equal(np.load(io.BytesIO(body), allow_pickle=False), decode_array(body))
    assert isinstance(made.store, RunStore)
