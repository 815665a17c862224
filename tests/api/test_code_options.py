"""Every option of every code, from the command to an exact product; and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from click.testing import CliRunner

import polarlambda
from polarcodes.registry import _OPTIONS
from polarlambda.cli import command
from polarlambda.code_options import parse_options
from polarlambda.errors import BadInput

RNG = np.random.default_rng(4)
A = RNG.integers(0, 256, (43, 7), np.uint8)
X = RNG.standard_normal((7, 2))
KERNEL = "[[1, 1], [1, -1]]"
TERNARY = "[[1, 1, 1], [1, 2, 4], [1, 3, 9]]"

# (code, N, s, options as typed); the files are those of the fixture below
CASES = [
    ("polar", 8, 5, ["epsilon=0.2"]),
    ("polar", 8, 5, ["erasure=[0.4, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]"]),
    ("polar", 8, 5, ["erasure=@erasure.json"]),
    ("polar", 8, 5, ["times=[1.0, 1.1, 1.2, 4.0]"]),
    ("polar", 8, 5, ["times=@times.npy"]),
    ("polar", 8, 5, ["times=@times.csv", "kernels=hadamard"]),
    ("polar", 11, 8, ["kernels=hadamard"]),
    ("polar", 6, 4, [f"kernels=[{KERNEL}, {TERNARY}]"]),
    ("polar", 6, 4, ["kernels=@kernels.json"]),
    ("polar", 12, 9, ["stages=2"]),
    ("polar", 16, 12, ["stages=2", "kernels=hadamard", "epsilon=0.3"]),
    ("hadamard", 8, 6, ["rounds=1"]),
    ("hadamard", 8, 6, ["rounds=2", "rotated=false"]),
    ("hadamard", 8, 6, ["rotated=true"]),
    ("mds", 9, 6, ["basis=random"]),
    ("mds", 9, 6, ["basis=chebyshev"]),
    ("mds", 9, 6, ["basis=vandermonde"]),
    ("lt", 12, 4, ["decoder=peeling", "c=0.1", "delta=0.3"]),
    ("lt", 12, 6, ["decoder=inactivation"]),
    ("product", 12, 6, ["grid=4x3", "data_grid=3x2"]),
]


@pytest.fixture
def files(tmp_path, monkeypatch):
    np.save(tmp_path / "A.npy", A)
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "times.npy", 1 + RNG.exponential(size=(20, 8)))
    (tmp_path / "times.csv").write_text("1,1.5,2,3\n")
    (tmp_path / "erasure.json").write_text(json.dumps([0.1] * 7 + [0.5]))
    (tmp_path / "kernels.json").write_text(f"[{KERNEL}, {TERNARY}]")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_option_has_a_case() -> None:
    typed = {(code, text.split("=")[0]) for code, _, _, options in CASES for text in options}
    assert typed == {(code, name) for code, names in _OPTIONS.items() for name in names}


@pytest.mark.usefixtures("local_environment")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} {' '.join(case[3])}")
def test_a_product_with_the_option_is_exact(case, files, local_stack) -> None:
    code, workers, blocks, options = case
    local_stack.set_chaos()
    typed = [part for text in options for part in ("--option", text)]
    done = CliRunner().invoke(
        command,
        ["encode", "A.npy", "options", "--workers", str(workers), "--data-blocks", str(blocks),
         "--code", code, "--replace", *typed],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(command, ["multiply", "options", "x.npy", "-o", "y.npy", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["exact"]
    y = np.load(files / "y.npy")
    assert np.linalg.norm(y - A @ X) <= 1e-5 * np.linalg.norm(A @ X)
    made = polarlambda.CodedMatrix.open("options").code
    assert (made.name, made.workers, made.data_blocks) == (code, workers, blocks)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("times=@gone.csv", "cannot read gone.csv: No such file"),
        ("times=@notes.txt", r"reads \.npy, \.json and \.csv files"),
        ("times=@words.csv", "cannot read words.csv: could not convert"),
        ("times=@cut.npy", "cannot read cut.npy"),
        ("kernels=@cut.json", "cannot read cut.json"),
    ],
)
def test_files_that_hold_no_numbers_are_refused(files, text: str, message: str) -> None:
    (files / "words.csv").write_text("fast,slow\n")
    (files / "cut.npy").write_bytes((files / "A.npy").read_bytes()[:-3])
    (files / "cut.json").write_text("[[1,")
    (files / "notes.txt").write_text("1, 2")
    with pytest.raises(BadInput, match=message):
        parse_options([text])


@pytest.mark.usefixtures("local_environment")
@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("epsilon=1.5", "epsilon must lie strictly between 0 and 1"),
        ("erasure=[0.1, 0.2]", "erasure must be 8 probabilities"),
        ("times=[1.0]", "times must be a sample"),
        ("kernels=[[[1, 0], [0, 1]]]", "kernels[0]"),
        ("kernels=ternary", "kernels must be mixed, hadamard or a list"),
        ("stages=9", "stages must be an integer in 1..3"),
    ],
)
def test_options_that_make_no_code_are_refused(files, option: str, message: str) -> None:
    done = CliRunner().invoke(
        command,
        ["encode", "A.npy", "never", "--workers", "8", "--data-blocks", "5", "--code", "polar",
         "--option", option],
    )  # fmt: skip
    assert done.exit_code == 2
    assert message in done.stderr, done.stderr
    assert "never" not in [manifest.name for manifest in polarlambda.list_matrices()]
