"""Workers with several tasks: every partial result counts, whoever dies and whenever."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blockstore import keys
from coordinator import events
from coordinator.inputs import InputRefused
from coordinator.run import cancel_run
from tests.coordinator.fake_platform import Answer, Fail, Parts, Platform, Silent
from tests.coordinator.one_run import RUN, close, resume, start, store

CODES = ("hadamard", "polar", "mds", "lt", "replication", "uncoded", "product", "berrut")
BLOCKS = {"uncoded": 16, "product": 9}  # of 64 coded blocks a product code has a corner of 36


def several(code="hadamard", data_blocks=11, **options) -> Platform:
    blocks = BLOCKS.get(code, data_blocks)
    settings = {"rows": 131, "dtype": "<f8"} | options
    return Platform(code_name=code, data_blocks=blocks, subtasks=4, **settings)


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("per_object", [1, 2, 4])
def test_an_undisturbed_run_is_exact_and_every_part_is_counted(code, per_object):
    platform = several(code, per_object=per_object)
    heard = []
    outcome = start(platform, on_event=heard.append)
    assert outcome.exact and close(outcome.value, platform.product)
    arrived = [e for e in heard if isinstance(e, events.Arrived)]
    assert len(arrived) == outcome.arrivals <= 64
    assert {e.task for e in arrived} <= {0, 1, 2, 3}
    report = store(platform).get_report()
    assert report["arrivals"] == len(report["answers"]) == outcome.arrivals
    assert {(a["worker"], a["task"]) for a in report["answers"]} == {
        (e.worker, e.task) for e in arrived
    }
    assert (report["workers"], report["subtasks"]) == (16, 4)


@pytest.mark.parametrize("estimator", ["best", "paper", "least-squares"])
def test_estimates_and_decoder_are_judged_by_place_and_named(estimator):
    platform = several(table={w: [Parts(done=1), Silent()] for w in range(16)})
    outcome = start(platform, estimator=estimator, until="error=0.01", deadline=90.0)
    judged = store(platform).get_status()
    assert (outcome.state, outcome.arrivals, judged.arrivals, judged.answers) == (
        "estimated", 16, 16, 64,
    )  # fmt: skip
    names = {"best": outcome.method, "paper": "sketch", "least-squares": "least-squares"}
    assert outcome.method == judged.method == names[estimator] != ""
    decoded = start(several(), estimator=estimator)
    assert decoded.exact and decoded.method == "syndrome" and 0.0 < decoded.rounding < 1e-9


@pytest.mark.parametrize("code", CODES)
def test_whole_workers_that_die_cost_no_more_than_what_they_had_not_sent(code):
    platform = several(code, table={w: [Parts(done=w), Answer()] for w in range(3)})
    outcome = start(platform)
    assert outcome.exact and close(outcome.value, platform.product)
    again = [t for t in platform.tasks if t.attempt == 2]
    if code in ("hadamard", "mds"):
        assert again == []  # any 44 of 64, and at least 52 came
    for task in again:
        assert task.worker < 3 and (task.todo or (0, 1, 2, 3)) == tuple(range(task.worker, 4))


@pytest.mark.parametrize("seed", range(20))
def test_an_ideal_code_needs_no_more_answers_when_they_are_missing_by_the_worker(seed):
    dead = np.random.default_rng(seed).permutation(16)[:5]
    platform = several(table={int(w): [Silent()] for w in dead})
    outcome = start(platform)
    assert outcome.exact and close(outcome.value, platform.product)
    assert outcome.arrivals == 44 and len(platform.invoked) == 16


def test_a_dead_worker_is_invoked_again_for_what_is_missing_only():
    table = {w: [Parts(done=1), Answer()] for w in range(8)}
    platform = several(table=table)  # 8 + 32 of 44
    outcome = start(platform)
    assert outcome.exact and close(outcome.value, platform.product)
    again = [t for t in platform.tasks if t.attempt == 2]
    assert sorted(t.worker for t in again) == list(range(8))  # invoked in random order
    assert {t.todo for t in again} == {(1, 2, 3)}
    assert len(json.dumps(again[0].to_event())) < 1024
    assert set(store(platform).list_parts()) >= {(w, 0, 0) for w in range(16)}


def test_partial_results_of_dead_workers_replace_an_invocation():
    table = {w: [Parts(done=2), Silent()] for w in range(10)}
    outcome = start(several(table=table))  # 20 + 24 = 44
    assert outcome.exact and outcome.arrivals == 44
    table[0] = [Parts(done=1), Silent()]
    outcome = start(several(table=table))
    assert outcome.state == "estimated" and outcome.arrivals == 43
    assert outcome.value is not None and outcome.error < 1.0


def test_what_a_failed_worker_had_put_stays():
    table = {w: [Parts(done=3, fail=Fail(after=0.0))] for w in range(10)}
    platform = several(table=table)
    outcome = start(platform)
    assert outcome.exact and outcome.arrivals >= 44
    assert len(platform.invoked) == 16


def test_a_damaged_part_is_deleted_alone_and_asked_for_again():
    table = {w: [Parts(done=2, damaged="cut"), Answer()] for w in range(11)}
    platform = several(table=table)  # 11 + 20 good ones
    outcome = start(platform)
    assert outcome.exact and close(outcome.value, platform.product)
    again = [t for t in platform.tasks if t.attempt == 2]
    assert {t.todo for t in again} == {(1, 2, 3)}


def test_a_part_of_the_wrong_shape_is_shown():
    outcome = start(several(table={0: [Parts(done=4, after=0.01, each=0.01, damaged="shape")]}))
    assert outcome.exact and [e.type for e in outcome.worker_errors] == ["WrongShape"]


def test_parts_with_other_boundaries_are_somebody_elses():
    platform = several(per_object=2, table={w: [Silent()] for w in range(8)})
    for w in range(8):
        platform.bucket.put(keys.part_key(RUN, w, 1, 2), b"?")
        platform.bucket.put(keys.result_key(RUN, w), b"?")
    outcome = start(platform)
    assert outcome.arrivals == 32 and not outcome.exact and outcome.worker_errors == ()


def test_nothing_is_begun_after_the_stop_marker():
    platform = several(data_blocks=4, default=[Parts(done=4, each=10.0)])
    outcome = start(platform)  # 16 of 64 after one task each
    assert outcome.exact and outcome.arrivals == 16
    platform.clock.sleep(1000.0)
    parts = store(platform).list_parts()
    assert {task for _, task, _ in parts} == {0, 1}  # the task in hand ends, no other begins


def test_the_same_bytes_whatever_came_later_and_after_a_resume():
    platform = several()
    first = start(platform)
    body = platform.bucket.objects[first.result_key].body
    decisive = store(platform).load_spec().decisive
    assert decisive is not None and max(decisive) > 15 and len(decisive) <= 64
    platform.bucket.delete([first.result_key])
    platform.clock.sleep(100.0)
    second = resume(platform)
    assert second.exact and store(platform).load_spec().decisive == decisive
    assert platform.bucket.objects[second.result_key].body == body


def test_a_resumed_run_takes_the_parts_that_are_there_and_asks_for_the_rest():
    table = {w: [Parts(done=1), Answer()] for w in range(16)}
    platform = several(table=table)
    began = platform.clock.now()
    outcome = start(platform, time_left=lambda: 22.0 - (platform.clock.now() - began))
    assert outcome.state == "running" and outcome.arrivals == 16
    cancel_run(platform.bucket, RUN)
    outcome = resume(platform)
    assert outcome.exact and close(outcome.value, platform.product)
    assert {t.todo for t in platform.tasks if t.attempt == 2} == {(1, 2, 3)}


def test_a_deadline_ends_with_the_estimate_of_every_part():
    platform = several(default=[Parts(done=4, each=10.0)])
    outcome = start(platform, deadline=15.0)
    assert outcome.state == "estimated" and outcome.arrivals == 16
    relative = np.linalg.norm(outcome.value - platform.product) / np.linalg.norm(platform.product)
    assert relative <= outcome.error_upper


@pytest.mark.parametrize("subtasks", [1, 4])
def test_tasks_ends_with_the_recovered_rows_and_names_the_missing_ones(subtasks):
    platform = Platform(
        code_name="uncoded",
        data_blocks=16,
        rows=131,
        dtype="<f8",
        subtasks=subtasks,
        table={w: [Silent()] for w in (2, 9)},
    )
    outcome = start(platform, until="tasks=0.85")
    assert (outcome.state, outcome.met, outcome.exact) == ("estimated", True, False)
    missing = np.zeros(131, bool)
    for first, last in outcome.missing_rows:
        missing[first:last] = True
    assert 0 < missing.sum() <= 0.15 * 131
    np.testing.assert_allclose(outcome.value[~missing], platform.product[~missing], rtol=1e-12)
    assert not outcome.value[missing].any()
    assert store(platform).get_report()["missing_rows"] == [list(s) for s in outcome.missing_rows]


@pytest.mark.parametrize("code", ["replication", "lt", "hadamard"])
def test_tasks_of_a_coded_matrix_counts_what_follows_exactly(code):
    dead = {w: [Silent()] for w in range(9)}
    platform = several(code, table=dead)
    outcome = start(platform, until="tasks=0.05")
    kept = np.ones(131, bool)
    for first, last in outcome.missing_rows:
        kept[first:last] = False
    if code == "hadamard":  # all or nothing
        assert outcome.state == "estimated" and not outcome.met and not kept.any()
        return
    assert outcome.met and kept.sum() >= 0.05 * 131
    np.testing.assert_allclose(outcome.value[kept], platform.product[kept], rtol=1e-6)


def test_a_run_on_its_id_twice_is_refused_as_ever():
    platform = several()
    start(platform)
    with pytest.raises(InputRefused, match="has begun"):
        start(platform)


OUTCOMES = st.one_of(
    st.just(Silent()),
    st.builds(Answer, st.floats(0.0, 30.0)),
    st.builds(
        Parts,
        st.integers(0, 4),
        st.floats(0.0, 30.0),
        st.floats(0.0, 5.0),
        st.sampled_from([None, Fail(), Fail("NotFinite", True)]),
        st.sampled_from(["", "cut", "nan"]),
    ),
)


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(st.integers(0, 7), st.lists(OUTCOMES, min_size=1, max_size=2)),
    st.sampled_from([1, 2, 4]),
    st.sampled_from(["hadamard", "polar"]),
)
def test_a_run_is_exact_or_says_that_it_is_not(table, per_object, code):
    platform = Platform(
        workers=8,
        data_blocks=6,
        rows=61,
        dtype="<f8",
        code_name=code,
        subtasks=4,
        per_object=per_object,
        table=table,
    )
    outcome = start(platform)
    assert outcome.state in ("exact", "estimated", "failed")
    good = store(platform).get_report()["arrivals"]
    assert good == outcome.arrivals
    if outcome.exact:
        assert close(outcome.value, platform.product)
    elif code == "hadamard":
        assert good < 24 or outcome.state == "failed"
