"""Products of two matrices with both factors coded, on the local stack, against NumPy."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from click.testing import CliRunner

import polarlambda
from blockstore.bucket import Bucket
from blockstore.connect import s3_client
from coordinator.refusals import PlanRefused
from encoder import SourceRefused
from polarlambda.cli import command
from polarlambda.errors import BadInput

pytestmark = pytest.mark.usefixtures("local_environment")


@pytest.fixture
def bucket(local_stack):
    """The stack's bucket, empty before and after the test."""
    found = Bucket(s3_client(), local_stack.bucket)
    found.delete(info.key for info in found.list(""))
    yield found
    found.delete(info.key for info in found.list(""))


def make(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return rng.random(shape) < 0.5
    if kind.kind in "iu":
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
        return rng.integers(low, high, shape, kind.newbyteorder("="), True).astype(kind)
    return rng.standard_normal(shape).astype(kind)


def matrices(bucket):
    return sorted({info.key.split("/")[1] for info in bucket.list("matrices/")})


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("f8", "f8"),
        ("f4", "f4"),
        ("u1", "u1"),
        ("i1", "?"),
        ("u2", "i2"),
        (">f8", "u1"),
        ("f2", "i2"),
    ],
)
def test_the_product_is_numpys_whichever_four_workers_die(local_stack, bucket, left, right):
    A, B = make(left, (5, 3)), make(right, (3, 7), seed=1)
    exact = A.astype("f8") @ B.astype("f8")
    for seed in range(2):
        local_stack.set_chaos(fail=4, seed=seed)
        result = polarlambda.matmul(A, B)
        assert (result.state, result.exact, result.met) == ("exact", True, True)
        single = "f4" in (left, right) or "f2" in (left, right)
        close = (1e-6 if single else 1e-13) * np.abs(exact).max()
        np.testing.assert_allclose(result.value, exact, atol=close, rtol=0)
    assert matrices(bucket) == []  # what was encoded for the run alone is gone


@pytest.mark.parametrize("shapes", [((1, 1), (1, 1)), ((1, 6), (6, 40)), ((40, 6), (6, 1))])
def test_vectors_and_numbers_are_matrices_too(local_stack, shapes):
    A, B = (make("f8", shape, seed) for seed, shape in enumerate(shapes))
    local_stack.set_chaos(fail=4, seed=3)
    np.testing.assert_allclose(polarlambda.matmul(A, B).value, A @ B, atol=1e-12)


def test_a_grid_that_was_asked_for_is_decoded_by_rows_and_columns(local_stack):
    A, B = np.asfortranarray(make("f8", (50, 30))), np.asfortranarray(make("f8", (30, 41), 1))
    local_stack.set_chaos(fail=4, seed=1)
    chosen = []
    result = polarlambda.matmul(A, B, grid=(4, 6), on_choice=chosen.append)
    assert (chosen[0].grid, chosen[0].survives) == ((4, 6), 5)
    assert (result.workers, result.method) == (24, "alternating")
    assert result.arrivals <= 20
    np.testing.assert_allclose(result.value, A @ B, atol=1e-11)


@pytest.mark.parametrize("code", ["polar", "hadamard,uncoded", "uncoded", "replication", "mds"])
def test_other_codes(code):
    A, B = make("f8", (20, 9)), make("f8", (9, 22), 1)
    sizes = {"grid": (4, 4), "data_blocks": (2, 4) if "," in code else (2, 2)}
    if code == "uncoded":
        sizes["data_blocks"] = (4, 4)
    result = polarlambda.matmul(A, B, code=code, **sizes)
    assert result.exact
    np.testing.assert_allclose(result.value, A @ B, atol=1e-11)


def test_the_deployed_coordinator_does_it_too():
    A, B = make("f8", (20, 9)), make("f8", (9, 22), 1)
    result = polarlambda.matmul(A, B, grid=(3, 4), on="lambda")
    assert result.exact and result.workers == 12
    np.testing.assert_allclose(result.value, A @ B, atol=1e-11)


def test_matrices_that_are_encoded_already_are_used_by_name_and_stay(bucket):
    A, B = make("f8", (20, 9)), make("f8", (9, 22), 1)
    polarlambda.matmul(A, B, grid=(4, 4), data_blocks=(3, 2), keep="ab")
    assert matrices(bucket) == ["ab-a", "ab-b"]
    chosen = []
    again = polarlambda.matmul("ab-a", "ab-b", on_choice=chosen.append)
    np.testing.assert_allclose(again.value, A @ B, atol=1e-11)
    assert (chosen[0].grid, chosen[0].data_grid) == ((4, 4), (3, 2))
    other = make("f8", (9, 5), 2)
    mixed = polarlambda.matmul("ab-a", other)
    np.testing.assert_allclose(mixed.value, A @ other, atol=1e-11)
    assert matrices(bucket) == ["ab-a", "ab-b"]
    with pytest.raises(BadInput, match="--transpose"):
        polarlambda.matmul("ab-b", "ab-a")
    with pytest.raises(PlanRefused, match="encoded with 4 already"):
        polarlambda.matmul("ab-a", other, grid=(8, 8))


def test_a_run_without_its_answers_has_an_estimate_and_is_resumed(local_stack, bucket):
    A, B = make("f8", (24, 9)), make("f8", (9, 24), 1)
    local_stack.set_chaos(fail=9, seed=1)
    result = polarlambda.matmul(A, B, grid=(4, 4), data_blocks=(3, 3), deadline=3.0)
    assert (result.met, result.exact, result.arrivals) == (False, False, 7)
    assert result.value.shape == (24, 24)
    assert 0 < result.error <= result.error_upper
    true = np.linalg.norm(result.value - A @ B) / np.linalg.norm(A @ B)
    assert true <= result.error_upper
    assert matrices(bucket) == [f"run-{result.run}-a", f"run-{result.run}-b"]
    shown = polarlambda.show_run(result.run)
    assert shown["spec"]["right"] == f"run-{result.run}-b"
    local_stack.set_chaos()
    resumed = polarlambda.resume_run(result.run)
    assert resumed.exact
    np.testing.assert_allclose(resumed.value, A @ B, atol=1e-11)
    assert matrices(bucket) == []


def test_an_estimate_that_is_good_enough_ends_the_run(bucket):
    A, B = make("f8", (24, 9)), make("f8", (9, 24), 1)
    result = polarlambda.matmul(A, B, grid=(8, 8), until="error=0.9")
    assert result.met and result.value.shape == (24, 24)
    assert matrices(bucket) == []


def npy(array) -> bytes:
    body = io.BytesIO()
    np.save(body, array)
    return body.getvalue()


@pytest.mark.parametrize(
    ("A", "B", "options", "error", "word"),
    [
        (np.ones((5, 3)), np.ones((4, 7)), {}, BadInput, r"\(5, 3\) and B has shape \(4, 7\)"),
        (np.ones((5, 3)), np.full((3, 7), np.nan), {}, SourceRefused, "B: .*finite"),
        (np.full((5, 3), np.inf), np.ones((3, 7)), {}, SourceRefused, "A: .*finite"),
        (np.ones((5, 3)), np.ones(3), {}, SourceRefused, "B: .*two-dimensional"),
        (np.ones((5, 3)), np.ones((3, 7)), {"grid": "16"}, BadInput, "grid"),
        (np.ones((5, 3)), np.ones((3, 7)), {"grid": (16, 16)}, PlanRefused, "5 rows"),
        (
            np.ones((5, 3)),
            np.ones((3, 7)),
            {"grid": (8, 8), "data_blocks": (6, 6)},
            PlanRefused,
            "6.*5 rows of A",
        ),
        (np.ones((5, 3)), np.ones((3, 7)), {"code": "berrut"}, ValueError, "approximately"),
        (np.ones((5, 3)), np.ones((3, 7)), {"until": "tasks=0.5"}, ValueError, "rows"),
        (np.ones((5, 3)), np.ones((3, 7)), {"relaunch": "x"}, ValueError, "share"),
        (np.ones((5, 3)), np.ones((3, 7)), {"estimator": "x"}, ValueError, "estimator"),
        ("nobody", np.ones((3, 7)), {}, Exception, "nobody"),
    ],
)
def test_bad_input_writes_nothing(bucket, A, B, options, error, word):
    with pytest.raises(error, match=word):
        polarlambda.matmul(A, B, **options)
    assert list(bucket.list("")) == []


def test_the_command(bucket, tmp_path, local_stack):
    A, B = make("f8", (5, 3)), make("f8", (3, 7), 1)
    (tmp_path / "A.npy").write_bytes(npy(A))
    (tmp_path / "B.npy").write_bytes(npy(B))
    local_stack.set_chaos(fail=4, seed=8)
    arguments = [str(tmp_path / "A.npy"), str(tmp_path / "B.npy"), "-o", str(tmp_path / "C.npy")]
    done = CliRunner().invoke(command, ["matmul", *arguments])
    assert done.exit_code == 0, done.output
    assert "survives any" in done.stderr and "exact after" in done.stdout
    np.testing.assert_allclose(np.load(tmp_path / "C.npy"), A @ B, atol=1e-12)
    done = CliRunner().invoke(command, ["matmul", *arguments, "--json", "--grid", "3x4"])
    told = json.loads(done.stdout)
    assert (told["exact"], told["workers"], told["value_path"]) == (True, 12, arguments[-1])
    np.savez(tmp_path / "A.npz", A=A)
    wrong = [str(tmp_path / "A.npz"), *arguments[1:]]
    done = CliRunner().invoke(command, ["matmul", *wrong])
    assert done.exit_code == 2 and "npz" in done.stderr


@pytest.mark.parametrize("options", [{"memory": "250MB"}, {"decode": "lambda"}])
def test_a_product_larger_than_memory_is_decoded_in_parts(options, tmp_path):
    A, B = make("f8", (61, 9)), make("f8", (9, 53), 1)
    result = polarlambda.matmul(A, B, grid=(4, 6), **options)
    assert result.exact, result.message
    np.testing.assert_allclose(np.asarray(result.value), A @ B, atol=1e-11)
