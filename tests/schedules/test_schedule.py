"""Schedules as data: the named ones, what is refused, and the way through JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polarcodes import InvalidCode, InvalidManifest, InvalidWorkers
from polarcodes.schedules import SCHEDULE_NAMES, Schedule, make_schedule, schedule_from_manifest

NAMED = [
    ("cpgc", 4, 2),
    ("cpgc", 4, 3),
    ("cpgc", 20, 3),
    ("cpgc", 8, 1),
    ("uc-mmc", 5, 5),
    ("mcc", 7, 3),
    ("rcsc", 10, 3),
    ("gradient", 6, 3),
    ("gradient", 7, 3),
    ("gradient", 5, 1),
    ("searched", 20, 3),
]


@pytest.fixture(params=NAMED, ids=lambda case: "-".join(map(str, case)))
def schedule(request):
    name, workers, load = request.param
    return make_schedule(name, workers=workers, load=load)


def words(schedule, worker):
    return ["+".join(str(m + 1) for m in schedule.codeword(worker, t).tasks) for t in range(3)]


def test_every_name_is_tried():
    assert {name for name, *_ in NAMED} == set(SCHEDULE_NAMES)


def test_a_schedule_is_a_table_of_codewords(schedule):
    load, workers, tasks = schedule.coefficients.shape
    assert (load, workers, tasks) == (schedule.load, schedule.workers, schedule.tasks)
    assert not schedule.coefficients.flags.writeable
    for t in range(load):
        for k in range(workers):
            word = schedule.codeword(k, t)
            dense = np.zeros(tasks)
            dense[word.tasks] = word.values
            assert np.array_equal(dense, schedule.coefficients[t, k])


def test_through_json_and_back(schedule):
    stored = json.loads(json.dumps(schedule.to_manifest(), allow_nan=False))
    again = schedule_from_manifest(stored)
    assert again == schedule
    assert hash(again) == hash(schedule)
    assert repr(again) == repr(schedule)
    assert str(again) == str(schedule)


def test_the_same_arguments_give_the_same_schedule(schedule):
    again = make_schedule(schedule.name, schedule.workers, schedule.load)
    assert again == schedule


def test_everything_that_all_messages_say_is_recovered(schedule):
    state = schedule.recovery()
    for worker in range(schedule.workers):
        for message in range(schedule.messages_per_worker):
            state.add(worker, message)
    assert state.missing == ()


def test_the_papers_twenty_workers():
    schedule = make_schedule("cpgc", workers=20, load=3)
    assert words(schedule, 0) == ["1", "3+4", "10+11"]
    assert words(schedule, 9) == ["10", "1+2", "9+12"]
    assert words(schedule, 10) == ["11", "2+4", "3+13"]
    assert words(schedule, 6) == ["7", "15+16", "6+15"]  # the worker that meets one twice
    for t in (1, 2):  # each half is a partition of all tasks into pairs
        for half in (slice(0, 10), slice(10, 20)):
            assert np.array_equal(schedule.coefficients[t, half].sum(axis=0), np.ones(20))


def test_uc_mmc_and_rcsc_are_shifted():
    table = make_schedule("uc-mmc", workers=5, load=3).coefficients
    assert [table[:, 4].argmax(axis=1).tolist()] == [[4, 0, 1]]
    rcsc = make_schedule("rcsc", workers=12, load=3, degrees=(1, 2, 3), seed=5)
    assert rcsc.coefficients.sum(axis=2).tolist() == [[1] * 12, [2] * 12, [3] * 12]
    assert rcsc.coefficients[:, 3].sum(axis=0).max() == 1  # distinct shifts
    for k in range(12):
        assert np.array_equal(np.roll(rcsc.coefficients[:, 0], k, axis=1), rcsc.coefficients[:, k])
    assert rcsc != make_schedule("rcsc", workers=12, load=3, seed=6)


@pytest.mark.parametrize(("workers", "load"), [(6, 2), (7, 3), (9, 4), (12, 5)])
def test_mcc_decodes_from_any_ceil_k_over_r_workers_and_no_fewer(workers, load):
    schedule = make_schedule("mcc", workers, load)
    enough = -(-workers // load)
    rng = np.random.default_rng(0)
    for _ in range(20):
        state = schedule.recovery()
        for count, worker in enumerate(rng.permutation(workers).tolist(), 1):
            state.add(worker)
            assert state.complete() == (count >= enough)


@pytest.mark.parametrize(("workers", "load"), [(5, 2), (7, 3), (20, 3), (11, 4), (6, 3), (8, 4)])
def test_gradient_coding_needs_k_minus_r_plus_1_messages(workers, load):
    schedule = make_schedule("gradient", workers, load)
    rng = np.random.default_rng(0)
    for _ in range(20):
        state = schedule.recovery()
        for count, worker in enumerate(rng.permutation(workers).tolist(), 1):
            state.add(worker)
            if count >= workers - load + 1:
                assert state.complete()
            elif workers % load:  # fractional repetition may be complete before
                assert not state.complete(0.9)
                assert state.recovered == ()


def test_volumes_and_message_times():
    seconds = np.array([[1.0, 2.0, 4.0, 8.0]])
    each = make_schedule("cpgc", 4, 2)
    assert each.message_volume == 0.25
    assert each.message_times(seconds)[0, 2].tolist() == [4.0, 8.0]
    together = make_schedule("mcc", 4, 2)
    assert (together.message_volume, together.messages_per_worker) == (0.5, 1)
    assert together.message_times(seconds)[0].tolist() == [[2.0], [4.0], [8.0], [16.0]]
    assert make_schedule("gradient", 4, 2).message_volume == 1.0


REFUSED = [
    (dict(name="cpgc", workers=6, load=2), "multiple of 4.*workers=6.*rcsc"),
    (dict(name="cpgc", workers=20, load=4), "load at most 3.*load=4.*rcsc"),
    (dict(name="uc-mmc", workers=3, load=4), r"load must be .* 1\.\.3, got 4.*less load"),
    (dict(name="uc-mmc", workers=3, load=0), r"load must be .* 1\.\.3, got 0"),
    (dict(name="mcc", workers=0, load=1), "workers must be an integer of at least 1, got 0"),
    (dict(name="rcsc", workers=4, load=True), "load must be .*, got True"),
    (dict(name="rcsc", workers=4, load=3), "degrees must add up to at most workers=4"),
    (dict(name="rcsc", workers=9, load=2, degrees=(2, 1)), "degrees must start with 1"),
    (dict(name="rcsc", workers=9, load=2, degrees=(1,)), "degrees must have one number for each"),
    (dict(name="rcsc", workers=9, load=2, degrees=(1, 0)), "degrees: each must be"),
    (dict(name="rcsc", workers=9, load=2, seed=-1), "seed must be"),
    (dict(name="cpgc", workers=8, load=2, seed=1), "has no option 'seed'; it has none"),
    (dict(name="searched", workers=20, load=3, tolerance=1.0), r"in \[0, 1\), got 1.0"),
    (dict(name="searched", workers=21, load=3), "search_schedule"),
    (dict(name="best", workers=21, load=3), "name must be one of cpgc, "),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_what_a_schedule_cannot_serve_is_refused(arguments, message):
    with pytest.raises(InvalidCode, match=message):
        make_schedule(**arguments)


TABLES = [
    ([[[0], []]], "no empty task, got .* in row 1 of worker 2"),
    ([[[0], [1, 1]]], "no repeated task, got W2 twice in row 1 of worker 2"),
    ([[[0], [1]], [[0], [0]]], "no repeated task, got the codeword of row 1 again in row 2"),
    ([[[0], [0]]], "got nobody for W2"),
    ([[[0], [2]]], r"0\.\.1, got 2"),
    ([[[0], [1]], [[0]]], "one codeword for each worker"),
    ([], "must be a list of rows"),
    ([[[0]], [[1]], [[0, 1]]], "load must be at most the number of tasks 2, got 3"),
]


@pytest.mark.parametrize(("table", "message"), TABLES)
def test_a_bad_table_is_refused(table, message):
    with pytest.raises(InvalidCode, match=message):
        Schedule.from_table("mine", table, tasks=2)


def test_bad_coefficients_are_refused():
    with pytest.raises(InvalidCode, match=r"shape \(r, K, M\).*got \(2, 2\)"):
        Schedule("mine", np.eye(2))
    with pytest.raises(InvalidCode, match="finite"):
        Schedule("mine", [[[np.nan, 1.0]]])
    with pytest.raises(InvalidCode, match="empty task"):
        Schedule("mine", [[[0.0, 0.0]]])
    with pytest.raises(InvalidCode, match="real numbers"):
        Schedule("mine", [["x"]])
    with pytest.raises(InvalidCode, match="again in row 2 of worker 1"):  # a multiple tells nothing
        Schedule("mine", [[[1.0, 2.0]], [[-2.0, -4.0]]])
    with pytest.raises(InvalidCode, match="sending must be one of each, together, sum"):
        Schedule("mine", [[[1.0, 2.0]]], sending="late")
    with pytest.raises(InvalidCode, match="name must be text"):
        Schedule("", [[[1.0, 2.0]]])


def test_places_that_do_not_exist_are_refused():
    schedule = make_schedule("mcc", 4, 2)
    for call in (schedule.codeword, schedule.equations, schedule.recovery().add):
        with pytest.raises(InvalidWorkers, match=r"worker must be in 0\.\.3, got 4"):
            call(4, 0)
    with pytest.raises(InvalidWorkers, match=r"message must be in 0\.\.0, got 1"):
        schedule.recovery().add(0, 1)


MANIFEST = make_schedule("mcc", 4, 2).to_manifest()
BROKEN = [
    ("version", 2),
    ("workers", "4"),
    ("load", 3),
    ("tasks", 3),
    ("sending", "maybe"),
    ("sending", 3),
    ("seed", -1),
    ("seed", "0"),
    ("codewords", None),
    ("codewords", [[[0], [1], [2], [3]]] * 2),
    ("codewords", [[[0], [1], [2], [9]]] * 2),
    ("values", [[[1.0]]]),
    ("values", 5),
    ("name", ""),
    ("surprise", 1),
]


@pytest.mark.parametrize(("field", "value"), BROKEN)
def test_a_broken_manifest_is_refused(field, value):
    with pytest.raises(InvalidManifest):
        schedule_from_manifest(MANIFEST | {field: value})


def test_a_manifest_must_be_an_object():
    with pytest.raises(InvalidManifest, match="JSON object"):
        schedule_from_manifest([1])


@given(st.integers(1, 12), st.data())
def test_long_schedules_print_within_a_line(load, data):
    workers = data.draw(st.integers(load, 60))
    shown = str(make_schedule("uc-mmc", workers, load)).splitlines()
    assert len(shown) in (load + 2, load + 3)
    assert all(len(line) <= 100 for line in shown)
