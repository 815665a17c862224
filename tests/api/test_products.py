"""Whole products on the local stack, through the Python API, against NumPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import polarlambda
from polarlambda.errors import BadInput

pytestmark = pytest.mark.usefixtures("local_environment")

DTYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", ">f8", ">i4"]


def make(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return rng.integers(limits.min, limits.max, shape, dtype.newbyteorder("="), True).astype(
            dtype
        )
    return (rng.standard_normal(shape) * 100).astype(dtype)


def encoded(A, name="t", **options):
    options = {"workers": 8, "data_blocks": 6, "replace": True, **options}
    polarlambda.encode(A, name, **options)
    return polarlambda.CodedMatrix.open(name)


def assert_product(value, A, x):
    exact = A.astype(np.longdouble) @ np.asarray(x).astype(np.longdouble)
    assert value.shape == exact.shape
    assert np.linalg.norm(value - exact) <= 1e-5 * np.linalg.norm(exact)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_product_is_numpys_for_every_dtype(dtype):
    A = make(dtype, (50, 7))
    x = np.linspace(-1, 2, 7)
    with encoded(A) as matrix:
        assert matrix.shape == (50, 7)
        assert matrix.dtype == np.dtype(dtype).newbyteorder("<")
        result = matrix.multiply(x)
    assert (result.state, result.exact, result.met) == ("exact", True, True)
    assert result.error == result.error_upper == 0
    assert result.arrivals <= result.workers == 8
    assert_product(result.value, A, x)


@pytest.mark.parametrize(
    "x",
    [
        [1, 2, 3, 4, 5, 6, 7],
        np.arange(7, dtype=">f4"),
        np.arange(7)[::-1],
        np.ones((7, 1), np.float16),
        np.arange(21.0).reshape(7, 3),
        np.asfortranarray(np.arange(14.0).reshape(7, 2)),
        np.arange(7) % 2 == 0,
    ],
)
def test_every_shape_and_layout_of_x(x):
    A = make("f4", (23, 7))
    with encoded(A) as matrix:
        assert_product(matrix.multiply(x).value, A, x)


@pytest.mark.parametrize("shape", [(1, 7), (5, 1), (3, 7), (6, 7), (49, 2)])
def test_few_rows_one_column_and_rows_that_do_not_divide(shape):
    A = make("f8", shape)
    x = np.arange(1.0, shape[1] + 1)
    with encoded(A) as matrix:
        assert_product(matrix.multiply(x).value, A, x)


@pytest.mark.parametrize("view", [lambda A: A[::-1], lambda A: A.T, lambda A: A[:, ::2]])
def test_layouts_of_the_matrix(view):
    A = view(make("i2", (24, 8)))
    x = np.arange(1.0, A.shape[1] + 1)
    with encoded(A) as matrix:
        assert_product(matrix.multiply(x).value, A, x)


def test_the_deployed_coordinator_gives_the_same_product():
    A = make("f4", (50, 7))
    x = np.arange(14.0).reshape(7, 2)
    with encoded(A) as matrix:
        here = matrix.multiply(x)
        there = matrix.multiply(x, on="lambda")
    assert (there.state, there.met, there.exact) == ("exact", True, True)
    assert there.run != here.run
    assert there.cost > 0
    assert_product(there.value, A, x)


@pytest.mark.parametrize("on", ["local", "lambda"])
def test_a_product_by_its_difference_to_an_exact_one(on):
    A = make("u1", (50, 7))
    x = np.arange(14.0).reshape(7, 2)
    with encoded(A) as matrix:
        first = matrix.multiply(x, on=on)
        second = matrix.multiply(x + 0.25, on=on, reference=first)
        third = matrix.multiply(x - 0.25, on=on, reference=second.run)
        assert second.reference == first.run and third.reference == second.run
        assert second.exact and third.exact
        assert_product(second.value, A, x + 0.25)
        assert_product(third.value, A, x - 0.25)
        with pytest.raises(BadInput, match="must be a run id or a Result, got int"):
            matrix.multiply(x, reference=7)
        with pytest.raises(BadInput, match="not an exact one"):
            matrix.multiply(x, reference=replace(first, exact=False, state="estimated"))


def test_arrivals_are_told_in_order_with_the_estimate_and_the_moment_of_decoding(local_stack):
    A = make("f4", (60, 7))
    told = []
    with encoded(A) as matrix:
        result = matrix.multiply(np.ones(7), on_arrival=told.append)
    assert [a.arrivals for a in told] == sorted(a.arrivals for a in told)
    assert told[-1].state == "exact"
    assert "decodable" in [a.state for a in told]
    assert {a.run for a in told} == {result.run}


def test_the_deployed_coordinators_arrivals_are_told_from_its_status(local_stack):
    local_stack.set_chaos(model="exponential", scale=1.0)
    A = make("f4", (60, 7))
    told = []
    with encoded(A) as matrix:
        matrix.multiply(np.ones(7), on="lambda", on_arrival=told.append)
    assert told
    assert all(0 < a.arrivals <= 8 and a.workers == 8 for a in told)


@pytest.mark.parametrize(("on", "state"), [("local", "stopped"), ("lambda", "cancelled")])
def test_what_on_arrival_raises_ends_the_run_and_is_raised(local_stack, tmp_path, on, state):
    (tmp_path / "delays.csv").write_text("0,0,0,0,60,60,60,60\n")
    local_stack.set_chaos(delays=tmp_path / "delays.csv")
    told = []

    def listen(arrival):
        if arrival.error is not None:
            told.append(arrival)
            raise ZeroDivisionError

    with encoded(make("f4", (60, 7))) as matrix, pytest.raises(ZeroDivisionError):
        matrix.multiply(np.ones(7), on=on, on_arrival=listen)
    assert len(told) == 1
    shown = polarlambda.show_run(told[0].run)
    assert shown["status"]["state"] == state
    assert shown["report"]["state"] == state


def test_until_an_error_is_met_by_an_estimate(local_stack):
    local_stack.set_chaos(model="exponential", scale=0.5)
    A = make("f4", (640, 7))
    with encoded(A, workers=64, data_blocks=48) as matrix:
        result = matrix.multiply(np.ones(7), until="error=1.5")
    assert result.met
    assert result.value.shape == (640,)
    assert result.state in ("estimated", "exact")
    if result.state == "estimated":
        assert 0 < result.error <= 1.5 < result.error * 100
        assert result.error_upper >= result.error


def test_a_plan_costs_nothing_and_knows_the_deployed_worker(local_stack):
    before = len(local_stack.invocations())
    with encoded(make("u1", (48, 7))) as matrix:
        plan = matrix.plan(np.ones((7, 2)))
    assert plan.x_shape == (7, 2)
    assert plan.worker_memory_mb == local_stack.functions["WorkerFunction"].memory
    assert len(local_stack.invocations()) == before


def test_a_taken_name_is_kept_unless_it_is_to_be_replaced():
    A, B = make("u1", (12, 7)), make("u1", (13, 7))
    with encoded(A, "taken") as matrix:
        first = matrix.manifest
    assert polarlambda.encode(A, "taken", workers=8, data_blocks=6) == first
    with pytest.raises(ValueError, match="taken"):
        polarlambda.encode(B, "taken", workers=8, data_blocks=6)
    assert polarlambda.show_matrix("taken") == first
    with encoded(B, "taken") as matrix:
        assert_product(matrix.multiply(np.ones(7)).value, B, np.ones(7))


def test_choices_are_explained():
    told = []
    polarlambda.encode(make("u1", (48, 7)), "chosen", on_choice=told.append, replace=True)
    assert len(told) == 1
    assert told[0].workers >= told[0].data_blocks
    assert any("workers" in line for line in told[0].explanation)


def test_matrices_are_listed_and_deleted():
    with encoded(make("u1", (12, 7)), "doomed"):
        pass
    assert "doomed" in [manifest.name for manifest in polarlambda.list_matrices()]
    assert polarlambda.delete_matrix("doomed") == 9
    assert "doomed" not in [manifest.name for manifest in polarlambda.list_matrices()]


def test_bad_arguments_are_refused_and_nothing_is_invoked(local_stack):
    with encoded(make("u1", (12, 7))) as matrix:
        before, runs = len(local_stack.invocations()), len(polarlambda.list_runs())
        for arguments, words in (
            ({"on": "mars"}, "on must be"),
            ({"until": "soon"}, "until"),
            ({"until": "error=0"}, "positive"),
            ({"deadline": 0}, "deadline"),
            ({"deadline": float("nan")}, "deadline"),
        ):
            with pytest.raises(ValueError, match=words):
                matrix.multiply(np.ones(7), **arguments)
    assert len(local_stack.invocations()) == before
    assert len(polarlambda.list_runs()) == runs


def test_a_size_that_is_none_is_refused_before_the_bucket_is_touched():
    with pytest.raises(BadInput, match="memory"):
        polarlambda.encode(make("u1", (12, 7)), "never", memory="lots")
    assert "never" not in [manifest.name for manifest in polarlambda.list_matrices()]
