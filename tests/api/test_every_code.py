"""Whole products with every code on one local stack: exact, also with a dead worker."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import polarlambda
from polarcodes import CODE_NAMES, CodeError
from polarlambda.cli import command
from polarlambda.errors import BadInput

pytestmark = pytest.mark.usefixtures("local_environment")

CASES: dict[str, tuple[str, int, int, dict[str, Any]]] = {
    "berrut": ("berrut", 12, 8, {}),
    "hadamard": ("hadamard", 8, 6, {}),
    "hadamard, one round": ("hadamard", 8, 5, {"rounds": 1}),
    "hadamard, 11 workers": ("hadamard", 11, 8, {}),
    "lt": ("lt", 12, 6, {}),
    "lt, peeling": ("lt", 12, 4, {"decoder": "peeling"}),
    "mds": ("mds", 9, 6, {}),
    "mds, Chebyshev": ("mds", 9, 6, {"basis": "chebyshev"}),
    "polar": ("polar", 8, 5, {}),
    "polar, 12 workers": ("polar", 12, 9, {}),
    "polar, 11 workers": ("polar", 11, 8, {"kernels": "hadamard"}),
    "product": ("product", 9, 4, {}),
    "replication": ("replication", 8, 4, {}),
    "uncoded": ("uncoded", 5, 5, {}),
}
RNG = np.random.default_rng(4)
A = RNG.integers(0, 256, (43, 7), np.uint8)
X = RNG.standard_normal((7, 2))


def test_every_name_has_a_case() -> None:
    assert {name for name, *_ in CASES.values()} == set(CODE_NAMES)


@pytest.mark.parametrize("dead", [0, 1])
@pytest.mark.parametrize("case", CASES)
def test_the_product_is_exact(case: str, dead: int, local_stack) -> None:
    name, workers, blocks, options = CASES[case]
    if dead and name == "uncoded":
        pytest.skip("needs everybody")
    polarlambda.encode(
        A,
        "every",
        workers=workers,
        data_blocks=blocks,
        code=name,
        code_options=options,
        replace=True,
        seed=1,
    )
    local_stack.set_chaos(fail=dead, seed=2)
    with polarlambda.CodedMatrix.open("every") as matrix:
        assert matrix.code.name == name
        result = matrix.multiply(X)
    assert (result.state, result.exact, result.met) == ("exact", True, True), result.message
    assert np.linalg.norm(result.value - A @ X) <= 1e-5 * np.linalg.norm(A @ X)
    assert result.error == 0.0
    assert 0.0 < result.rounding < 1e-4
    assert result.method in result.message
    if result.arrivals == blocks:
        assert not result.verified and "not verified" in str(result)


@pytest.mark.parametrize("case", ["hadamard, one round", "mds, Chebyshev", "polar", "product"])
def test_the_product_is_exact_with_several_blocks_per_worker(case: str, local_stack) -> None:
    name, workers, blocks, options = CASES[case]
    polarlambda.encode(
        A,
        "several",
        workers=workers,
        data_blocks=blocks,
        code=name,
        code_options=options,
        subtasks=4,
        per_object=2,
        replace=True,
    )
    local_stack.set_chaos(fail=1, seed=2)
    with polarlambda.CodedMatrix.open("several") as matrix:
        assert (matrix.code.name, matrix.code.workers) == (name, 4 * workers)
        result = matrix.multiply(X)
    assert (result.exact, result.subtasks) == (True, 4), result.message
    assert np.linalg.norm(result.value - A @ X) <= 1e-5 * np.linalg.norm(A @ X)
    assert 4 * blocks <= result.arrivals <= 4 * workers and 0.0 < result.rounding < 1e-4


@pytest.mark.parametrize("option", ["rounds=1", "rotated=false"])
def test_the_command_takes_codes_with_options(tmp_path, option: str) -> None:
    np.save(tmp_path / "A.npy", A)
    arguments = ["encode", str(tmp_path / "A.npy"), "typed", "--workers", "8", "--data-blocks", "6"]
    done = CliRunner().invoke(
        command, [*arguments, "--code", "hadamard", "--option", option, "--replace"]
    )
    assert done.exit_code == 0, done.output
    assert "(hadamard code, 8 workers, 6 data blocks)" in done.stdout
    code = polarlambda.CodedMatrix.open("typed").code
    assert code.rounds.plain == (option == "rounds=1") and code.rounds.angles is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--code", "nonsense"], "code must be one of auto, berrut, hadamard"),
        (["--code", "polar", "--option", "rounds=1"], "no option 'rounds'; it has"),
        (["--code", "mds", "--option", "basis=legendre"], "basis must be one of random"),
        (["--code", "mds", "--option", "basis"], "--option must be NAME=VALUE"),
        (["--option", "rounds=1"], "need the name of their code"),
        (["--code", "lt", "--option", "c=0.1", "--option", "c=0.2"], "given twice"),
        (["--code", "hadamard", "--workers", "1"], "workers"),
    ],
)
def test_what_no_code_has_is_refused_before_anything_is_written(
    tmp_path, arguments: list[str], message: str
) -> None:
    np.save(tmp_path / "A.npy", A)
    done = CliRunner().invoke(command, ["encode", str(tmp_path / "A.npy"), "never", *arguments])
    assert done.exit_code == 2
    assert message in done.stderr, done.stderr
    assert "never" not in [manifest.name for manifest in polarlambda.list_matrices()]


def test_an_estimator_of_ones_own_choice(local_stack) -> None:
    local_stack.set_chaos(model="exponential", scale=1.0)
    polarlambda.encode(A, "every", workers=32, data_blocks=30, code="hadamard", replace=True)
    with polarlambda.CodedMatrix.open("every") as matrix:
        found = {
            (name, on): matrix.multiply(X, until="seconds=0.4", estimator=name, on=on)
            for name, on in (("best", "local"), ("paper", "local"), ("shrinkage", "lambda"))
        }
        with pytest.raises(ValueError, match="estimator must be one of best, paper"):
            matrix.multiply(X, estimator="median")
    names = {"best": "least-squares", "paper": "sketch", "shrinkage": "shrinkage"}
    for (name, _), result in found.items():
        if result.state == "estimated":
            assert result.method == names[name]
            assert f"by {names[name]}" in str(result)
            assert polarlambda.show_run(result.run)["report"]["estimator"] == name


def test_options_of_a_code_that_are_no_mapping_of_names_are_refused() -> None:
    with pytest.raises((BadInput, CodeError, ValueError), match="no option"):
        polarlambda.encode(A, "never", code="mds", code_options={"rounds": 2})
