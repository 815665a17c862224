"""Workers with several tasks on the local stack: dead ones, slow ones, and every answer counted."""

from __future__ import annotations

import numpy as np
import pytest

import polarlambda
from blockstore.bucket import Bucket
from blockstore.connect import s3_client
from blockstore.runs import RunStore
from coordinator import events
from coordinator.refusals import PlanRefused
from encoder import SubtasksRefused

WORKERS, SUBTASKS = 32, 4
DEAD = SLOW = 3  # 10 % of the workers each


@pytest.fixture
def A():
    return np.random.default_rng(1).integers(0, 256, (1_000, 40), np.uint8)


def delays(folder, slow):
    """A CSV in which `slow` workers sleep for 3 s before they begin."""
    row = np.zeros(WORKERS)
    row[np.random.default_rng(7).permutation(WORKERS)[:slow]] = 3.0
    path = folder / "delays.csv"
    np.savetxt(path, row[None, :], delimiter=",")
    return path


def test_exact_with_a_tenth_of_the_workers_dead_and_a_tenth_slow(
    A, local_environment, local_stack, tmp_path
):
    x = np.random.default_rng(2).standard_normal(40)
    polarlambda.encode(A, "parts", workers=WORKERS, data_blocks=22, subtasks=SUBTASKS, replace=True)
    local_stack.warm("WorkerFunction", WORKERS)
    local_stack.set_chaos(delays=delays(tmp_path, SLOW), fail=DEAD, seed=3)
    heard = []
    with polarlambda.CodedMatrix.open("parts") as matrix:
        result = matrix.multiply(x, on_event=heard.append)
    expected = A.astype(float) @ x
    assert result.exact and result.verified == (result.arrivals > 22 * SUBTASKS)
    assert np.linalg.norm(result.value - expected) <= 1e-5 * np.linalg.norm(expected)
    assert (result.workers, result.subtasks) == (WORKERS, SUBTASKS)
    store = RunStore(Bucket(s3_client(), local_stack.bucket), result.run)
    report = store.get_report()
    arrived = {(e.worker, e.task) for e in heard if isinstance(e, events.Arrived)}
    assert {(a["worker"], a["task"]) for a in report["answers"]} == arrived
    assert report["arrivals"] == len(arrived) == result.arrivals >= 22 * SUBTASKS
    local_stack.drain()
    # The dead never answer; the slow woke up after the marker and began nothing.
    assert len({worker for worker, _, _ in store.list_parts()}) <= WORKERS - DEAD
    assert report["attempts"] == 1


@pytest.mark.parametrize("on", ["local", "lambda"])
def test_tasks_gives_the_rows_that_are_there_and_names_the_others(
    A, on, local_environment, local_stack
):
    x = np.random.default_rng(2).standard_normal(40)
    polarlambda.encode(A, "plain", workers=8, code="uncoded", subtasks=SUBTASKS, replace=True)
    local_stack.warm("WorkerFunction", 8)
    local_stack.set_chaos(fail=1, seed=3)
    with polarlambda.CodedMatrix.open("plain") as matrix:
        result = matrix.multiply(x, until="tasks=0.8", on=on)
    assert (result.state, result.met, result.exact) == ("estimated", True, False)
    missing = np.zeros(1_000, bool)
    for first, last in result.missing_rows:
        missing[first:last] = True
    assert 0 < missing.sum() <= 200 and "without rows" in str(result)
    np.testing.assert_allclose(result.value[~missing], (A.astype(float) @ x)[~missing])


@pytest.mark.parametrize("options", [{"subtasks": 0}, {"subtasks": 65}, {"per_object": 2}])
def test_bad_numbers_are_refused_before_anything_is_written(A, local_environment, options):
    with pytest.raises(SubtasksRefused):
        polarlambda.encode(A, "refused", workers=8, **options)
    assert "refused" not in {m.name for m in polarlambda.list_matrices()}


def test_more_data_blocks_than_rows_are_refused(local_environment):
    with pytest.raises(SubtasksRefused, match="rows"):
        polarlambda.encode(np.ones((20, 4)), "refused", workers=8, data_blocks=6, subtasks=4)
    with pytest.raises(PlanRefused, match="subtasks"):
        polarlambda.plan_matrix(
            shape=(20, 4), dtype="float32", workers=8, data_blocks=6, subtasks=4
        )


def test_a_plan_says_what_several_tasks_cost_and_save():
    shape = {"shape": (20_000, 12_288), "dtype": "uint8", "workers": 32}
    _, one = polarlambda.plan_matrix(**shape, data_blocks=28)
    _, four = polarlambda.plan_matrix(**shape, data_blocks=16, subtasks=4)
    assert (one.subtasks, four.subtasks) == (1, 4)
    assert four.usage.invokes == 32
    assert four.usage.puts > one.usage.puts and four.usage.lists >= one.usage.lists
    assert four.stored.objects >= one.stored.objects
    assert four.data_blocks == 64 and 64 <= four.arrivals_mean <= 66
    _, grouped = polarlambda.plan_matrix(**shape, data_blocks=16, subtasks=4, per_object=2)
    assert grouped.usage.puts < four.usage.puts


@pytest.mark.parametrize("schedule", ["cpgc", "rcsc", "uc-mmc", "mcc"])
def test_a_schedule_gives_the_rows_that_follow_and_all_of_them_in_the_end(
    A, schedule, local_environment, local_stack
):
    x = np.random.default_rng(2).standard_normal(40)
    made = polarlambda.encode(A, "plan", workers=8, subtasks=3, schedule=schedule, replace=True)
    assert (made.workers, made.blocks, made.data_blocks) == (8, 24, 8)
    local_stack.warm("WorkerFunction", 8)
    expected = A.astype(float) @ x
    with polarlambda.CodedMatrix.open("plan") as matrix:
        assert matrix.code.schedule.name == schedule
        result = matrix.multiply(x)
        assert result.exact
        np.testing.assert_allclose(result.value, expected, atol=1e-4 * np.abs(expected).max())
        local_stack.set_chaos(fail=2, seed=4)
        result = matrix.multiply(x, until="tasks=0.5")
        assert result.met
        kept = np.ones(1_000, bool)
        for first, last in result.missing_rows:
            kept[first:last] = False
        assert kept.sum() >= 500 and (result.exact or not result.value[~kept].any())
        np.testing.assert_allclose(
            result.value[kept], expected[kept], atol=1e-4 * np.abs(expected).max()
        )


def test_a_schedule_that_cannot_serve_is_refused_before_anything_is_written(A, local_environment):
    from polarcodes.errors import InvalidCode

    for options, rule in [
        ({"workers": 7, "subtasks": 2, "schedule": "cpgc"}, "workers"),
        ({"workers": 8, "subtasks": 9, "schedule": "rcsc"}, "load"),
        ({"workers": 8, "subtasks": 2, "schedule": "gradient"}, "sum of all tasks"),
        ({"workers": 8, "subtasks": 2, "schedule": "none"}, "name"),
    ]:
        with pytest.raises(InvalidCode, match=rule):
            polarlambda.encode(A, "refused", **options)
    with pytest.raises(polarlambda.BadInput, match="workers"):
        polarlambda.encode(A, "refused", subtasks=2, schedule="rcsc")
    with pytest.raises(polarlambda.BadInput, match="leave out"):
        polarlambda.encode(A, "refused", workers=8, schedule="rcsc", code="polar")
    assert "refused" not in {m.name for m in polarlambda.list_matrices()}


def test_auto_weighs_messages_against_delays_and_says_so(A, local_environment):
    said = []
    encoding, run = polarlambda.plan_matrix(
        shape=(20_000, 12_288), dtype="uint8", workers=32, subtasks="auto"
    )
    assert encoding.choice.explanation[0].startswith(f"subtasks = {run.subtasks}: the fewest")
    made = polarlambda.encode(
        A,
        "auto",
        workers=8,
        subtasks="auto",
        replace=True,
        on_choice=lambda choice: said.extend(choice.explanation),
    )
    assert said[0].startswith(f"subtasks = {made.shares.per_worker}: ")
    assert made.blocks == 8 * made.shares.per_worker
