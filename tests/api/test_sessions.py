"""A series of products in one session, on the local stack."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import polarlambda
from coordinator.refusals import PlanRefused
from polarlambda.errors import BadInput
from polarlambda.settings import SettingMissing

pytestmark = pytest.mark.usefixtures("local_environment")

WORKERS = 8


@pytest.fixture
def matrix():
    A = np.random.default_rng(2).standard_normal((60, 9))
    polarlambda.encode(A, "series", workers=WORKERS, data_blocks=6, replace=True)
    with polarlambda.CodedMatrix.open("series") as opened:
        yield A, opened


def assert_product(value, A, x):
    exact = A @ x
    assert value.shape == exact.shape
    assert np.linalg.norm(value - exact) <= 1e-5 * np.linalg.norm(exact)


def test_every_product_of_a_session_is_numpys_and_a_run_of_its_own(matrix):
    A, coded = matrix
    rng = np.random.default_rng(3)
    runs, heard = [], []
    with coded.session(mode="invoke") as session:
        for shape in [(9,), (9, 2), (9,)]:
            x = rng.standard_normal(shape)
            result = session.multiply(x, on_arrival=lambda arrival: heard.append(arrival.run))
            assert result.exact
            assert_product(result.value, A, x)
            runs.append(result.run)
    assert len(set(runs)) == 3 and set(heard) == set(runs)
    assert [polarlambda.show_run(run)["status"]["state"] for run in runs] == ["exact"] * 3


def test_the_totals_are_those_of_the_products(matrix):
    _, coded = matrix
    with coded.session() as session:
        assert session.usage.products == session.usage.requests == session.usage.dollars == 0
        results = [session.multiply(np.ones(9, np.float32)) for _ in range(2)]
        used = session.usage
    assert used.products == 2
    assert used.usage.invokes == 2 * WORKERS
    assert used.dollars == pytest.approx(sum(result.cost for result in results))
    assert used.bytes_read == 2 * WORKERS * (10 * 9 * 8 + 9 * 4)
    assert "2 products" in str(used) and used.to_json()["requests"] == used.requests


def test_an_estimate_and_a_resumed_run_are_those_of_ordinary_products(matrix, local_environment):
    A, coded = matrix
    local_environment.set_chaos(fail=3)  # of 8, more than the code bears
    x = np.ones(9)
    with coded.session() as session:
        result = session.multiply(x, until="exact", deadline=1.5)
        assert result.state == "estimated" and not result.met
    local_environment.set_chaos()
    resumed = polarlambda.resume_run(result.run)
    assert resumed.exact
    assert_product(resumed.value, A, x)


def test_bad_input_is_refused_before_anything_is_written(matrix):
    _, coded = matrix
    with pytest.raises(BadInput, match='mode must be "resident" or "invoke"'):
        coded.session(mode="eager")
    for seconds in (0, -1.0, float("nan"), float("inf")):
        with pytest.raises(BadInput, match="idle_limit must be 1 s or more"):
            coded.session(mode="resident", idle_limit=seconds)
    with coded.session() as session:
        before = len(polarlambda.list_runs())
        with pytest.raises(ValueError, match="until"):
            session.multiply(np.ones(9), until="soon")
        with pytest.raises(ValueError, match="9"):
            session.multiply(np.ones(8))
        assert len(polarlambda.list_runs()) == before
    with pytest.raises(BadInput, match="this session is closed"):
        session.multiply(np.ones(9))


def test_a_session_needs_a_worker(matrix, monkeypatch):
    _, coded = matrix
    monkeypatch.delenv("POLARLAMBDA_WORKER")
    with (
        polarlambda.CodedMatrix.open(coded.manifest.name) as opened,
        pytest.raises(SettingMissing),
    ):
        opened.session()


def test_a_product_can_be_that_of_a_difference(matrix):
    A, coded = matrix
    x = np.arange(9.0)
    with coded.session() as session:
        first = session.multiply(x)
        second = session.multiply(x + 1e-3, reference=first)
    assert second.exact
    assert_product(second.value, A, x + 1e-3)


def test_the_plan_says_which_mode_is_cheaper(matrix):
    _, coded = matrix
    with coded.session() as session:
        plan = session.plan()
        assert plan.resident_seconds < plan.invoke_seconds
        gap = plan.break_even
        assert plan.resident_dollars(gap) == pytest.approx(plan.invoke_dollars)
        assert (plan.cheaper(0.9 * gap), plan.cheaper(1.1 * gap)) == ("resident", "invoke")
        assert f"up to {gap:.1f} s" in str(plan) and plan.to_json()["fits"]
        assert session.plan(x_columns=50).resident_memory > plan.resident_memory


def test_blocks_that_do_not_fit_are_refused_before_anything_is_announced(matrix):
    _, coded = matrix
    with coded.session(mode="resident") as session:
        session._worker.limits = replace(session._worker.limits, memory_mb=121)
        with pytest.raises(PlanRefused, match=r"worker_memory_mb = 12[2-9] would fit"):
            session.multiply(np.ones(9))
        assert session.usage.requests == 0


def test_more_residents_than_may_run_at_once_are_refused(matrix):
    _, coded = matrix
    with coded.session(mode="resident") as session:
        session._worker.limits = replace(session._worker.limits, reserved=WORKERS - 1)
        with pytest.raises(PlanRefused, match="residents stay, and 7 workers run at once"):
            session.multiply(np.ones(9))
