"""Several blocks for each worker in plans: the code, its options, its size and its time."""

from __future__ import annotations

import numpy as np
import pytest

from blockstore.subtasks import Subtasks
from coordinator.candidates import REDUNDANCIES_OF_SEVERAL
from coordinator.expected_time import planned_shares
from coordinator.planning import choose_code, choose_subtasks, plan_encoding, plan_multiply
from coordinator.refusals import PlanRefused
from coordinator.waiting import waiting_times
from polarcodes import code_from_manifest, make_code
from polarcodes.schedules import ScheduleCode, make_schedule

SHAPE = (20_000, 3_000)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
@pytest.mark.parametrize("subtasks", [2, 4])
def test_the_default_code_is_one_that_any_answers_decode(dtype, subtasks):
    choice = choose_code(SHAPE, dtype, workers=16, subtasks=subtasks)
    code = choice.make()
    assert (choice.code, dict(choice.options), choice.workers) == ("hadamard", {}, 16)
    assert (code.workers, code.data_blocks) == (16 * subtasks, choice.data_blocks * subtasks)
    assert code.rounds.angles is not None  # rotated: ideal
    assert choice.redundancy in REDUNDANCIES_OF_SEVERAL


def test_options_go_to_the_code_of_all_blocks():
    choice = choose_code(
        SHAPE, "uint8", workers=8, redundancy=0.25, code="hadamard", options={"rounds": 1},
        subtasks=4,
    )  # fmt: skip
    code = choice.make(seed=7)
    assert (code.workers, code.data_blocks, code.seed) == (32, 24, 7)
    assert code.rounds.plain and len(code.rounds.signs) == 1


@pytest.mark.parametrize(
    ("code", "options", "redundancy"),
    [
        ("polar", {}, 0.25),
        ("hadamard", {"rounds": 1}, 0.25),
        ("mds", {"basis": "chebyshev"}, 0.25),
        ("lt", {}, 0.5),
        ("replication", {}, 0.5),
        ("uncoded", {}, None),
        ("berrut", {}, 0.25),
        ("product", {}, 7 / 16),
    ],
)
def test_every_code_is_planned_with_several_blocks(code, options, redundancy):
    plan = plan_encoding(
        SHAPE, "float32", workers=16, redundancy=redundancy, code=code, options=options, subtasks=4
    )
    built = code_from_manifest(plan.manifest.code)
    run = plan_multiply(plan.manifest, SHAPE[1:], rounds=64)
    assert (built.name, built.workers, run.subtasks) == (code, 64, 4)
    assert built.data_blocks <= run.arrivals_mean <= run.arrivals_p99 <= 64
    assert run.time.task > 0 and 0 < run.time.coded < np.inf


def test_an_ideal_code_waits_for_the_answer_that_completes_s():
    shares = planned_shares(8, 4)
    code = make_code("hadamard", workers=32, data_blocks=20)
    times = np.random.default_rng(1).random((50, 32))
    assert sorted(shares.places) == list(range(32)) and planned_shares(8, 1) is None
    assert np.array_equal(waiting_times(code, times), np.sort(times, axis=1)[:, 19])


def test_a_schedule_waits_for_its_own_answers_in_their_order():
    code = ScheduleCode(make_schedule("uc-mmc", 8, 2))
    shares = Subtasks(8, 2, 1, tuple(range(16)))
    start = np.random.default_rng(2).random((200, 8))
    moments = (start[:, :, None] + [1.0, 2.0]).reshape(200, -1)[:, list(shares.blocks)]
    found = waiting_times(code, moments)
    assert found.shape == (60,)
    for when, row in zip(found, moments, strict=False):
        assert code.decodable(np.flatnonzero(row <= when))
        assert not code.decodable(np.flatnonzero(row < when))


def test_the_number_of_tasks_is_chosen_for_each_code_and_explained():
    auto = choose_subtasks(SHAPE, "uint8", workers=16)
    named = choose_subtasks(
        SHAPE, "uint8", workers=16, code="hadamard", options={"rounds": 1}, per_object=2
    )
    assert auto.explained.explanation[0].startswith(f"subtasks = {auto.subtasks}: the fewest")
    assert auto.code.subtasks == auto.subtasks
    assert named.subtasks % 2 == 0 and dict(named.code.options) == {"rounds": 1}


@pytest.mark.parametrize("per_object", [0, -1, 3])
def test_no_number_of_tasks_that_results_per_object_divides(per_object):
    with pytest.raises(PlanRefused, match="results per object"):
        choose_subtasks(SHAPE, "uint8", workers=16, per_object=per_object)
