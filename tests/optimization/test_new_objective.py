"""scripts/new_objective.py: a folder that is tested, built and deployed as it is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from polarlambda.local.errors import OptionRefused
from polarlambda.local.gather import gather
from tests.template.cloudformation import load_template, statements

ROOT = Path(__file__).resolve().parents[2]


def new_objective(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "scripts" / "new_objective.py", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    done = new_objective(tmp_path / "valley", "mine:score", "--start", "0.5,2")
    assert done.returncode == 0, done.stderr
    return tmp_path / "valley"


def test_the_folder_has_a_worked_example_whose_tests_pass(folder):
    assert {path.name for path in folder.iterdir()} == {
        *("Makefile", "README.md", "mine.py", "requirements.txt", "samconfig.toml"),
        *("template.yaml", "test_objective.py"),
    }
    assert not [path for path in folder.iterdir() if re.search("@[A-Z_]+@", path.read_text())]
    done = subprocess.run(["make", "test"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_its_tests_notice_an_objective_that_cannot_be_optimised(folder):
    (folder / "mine.py").write_text(
        "import numpy as np\n\ndef score(theta, seed):\n"
        "    theta[0] = 5\n    return float(np.random.default_rng().random())\n"
    )
    done = subprocess.run(["make", "test"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "2 failed" in done.stdout


def every(value):
    return value if isinstance(value, list) else [value]


def test_its_role_reads_points_and_writes_values_and_nothing_else(folder):
    granted = {
        (action, str(resource))
        for statement in statements(load_template(folder / "template.yaml"), "ObjectiveRole")
        for action in every(statement["Action"])
        for resource in every(statement["Resource"])
    }
    objects = {(a, r.partition("optimizations/")[2]) for a, r in granted if a.startswith("s3:")}
    assert objects == {
        ("s3:GetObject", "*/round.json'}"),
        ("s3:GetObject", "*/point.npy'}"),
        ("s3:PutObject", "*/answers/*'}"),
        ("s3:PutObject", "*/failures/*'}"),
    }
    assert {a for a, _ in granted if not a.startswith("s3:")} == {
        "logs:CreateLogStream",
        "logs:PutLogEvents",
    }


def test_the_local_stack_takes_its_function_and_parameters(folder):
    template, roots = gather(None, {"ObjectiveMemory": "512", "WorkerMemory": "600"}, folder)
    function = template.functions["ObjectiveFunction"]
    assert (function.memory, template.functions["WorkerFunction"].memory) == (512, 600)
    assert function.environment["POLARLAMBDA_BUCKET"] in template.buckets.values()
    assert function.environment["POLARLAMBDA_OBJECTIVE_CALLABLE"] == "mine:score"
    assert roots["ObjectiveFunction"] == folder
    assert roots["WorkerFunction"] == ROOT


def test_a_folder_without_a_template_is_refused(tmp_path):
    with pytest.raises(OptionRefused, match=r"scripts/new_objective\.py"):
        gather(None, {}, tmp_path)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("Bad_Name", "mine:score"), "lower-case letter"),
        (("ok", "mine"), "module:function"),
        (("ok", "a.b:score"), "module of one file"),
        (("ok", "mine:score", "--start", "x"), "zeros:P"),
        (("ok", "mine:score", "--timeout", "1000"), "--timeout must be 1 to 900"),
        (("ok", "mine:score", "--from", "nothere.py"), "no such file"),
        (("ok", "--example", "nothere"), "there are"),
        (("ok",), "name an objective"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(tmp_path, arguments, word):
    done = new_objective(tmp_path / arguments[0], *arguments[1:])
    assert done.returncode != 0
    assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / arguments[0]).exists()


def test_nothing_is_overwritten(folder):
    (folder / "mine.py").write_text("kept")
    done = new_objective(folder, "mine:score")
    assert done.returncode != 0
    assert "not empty" in done.stderr
    assert (folder / "mine.py").read_text() == "kept"
