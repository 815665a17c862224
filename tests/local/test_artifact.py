"""What runs is the built artifact, not the sources."""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from polarlambda.local import LocalStack
from polarlambda.local.artifact import cache_folder, link_runtime, stale_files
from polarlambda.local.errors import BuildFailed

TOY = Path(__file__).parent / "toy"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    shutil.copytree(TOY, tmp_path / "p")
    return tmp_path / "p"


@pytest.fixture
def version(project: Path, new_client: Callable[..., Any]) -> Callable[..., str]:
    def run(**options: Any) -> str:
        with LocalStack(template=project / "one.yaml", **options) as stack:
            response = new_client(stack).invoke(
                FunctionName="WorkerFunction", Payload=json.dumps({"do": "describe"})
            )
            found: str = json.loads(response["Payload"].read())["version"]
            return found

    return run


def edit(project: Path, version: str) -> None:
    source = project / "app.py"
    source.write_text(re.sub('VERSION = ".*"', f'VERSION = "{version}"', source.read_text()))


def test_an_edit_without_a_build_changes_nothing_and_is_pointed_out(
    project: Path, version: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "polarlambda.local")
    assert version() == "first"
    assert "building WorkerFunction for Python 3." in caplog.text
    caplog.clear()
    assert version() == "first"
    assert caplog.text == ""
    edit(project, "second")
    assert version() == "first"
    assert "artifact of WorkerFunction is older than the sources (app.py)" in caplog.text
    caplog.clear()
    assert version(build="stale") == "second"
    assert "older" not in caplog.text


def test_every_difference_from_the_sources_is_seen(tmp_path: Path) -> None:
    root, artifact = tmp_path / "root", tmp_path / "artifact"
    for folder in (root, artifact):
        for name in ("app.py", "own/a.py", "own/deep/b.py", "both/c.py", "both/gone.py"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(name)
    (artifact / "numpy").mkdir()
    (artifact / "numpy" / "core.py").write_text("only there")
    (root / "both" / "other").mkdir()
    (root / "both" / "other" / "function.py").write_text("left out")
    (artifact / "own" / "__pycache__").mkdir()
    (artifact / "own" / "__pycache__" / "a.pyc").write_text("compiled")
    (root / "README").write_text("no source")
    assert stale_files(root, artifact) == []
    (root / "app.py").write_text("changed")
    (root / "own" / "deep" / "b.py").write_text("changed")
    (root / "own" / "new.py").write_text("new")
    (root / "both" / "gone.py").unlink()
    assert stale_files(root, artifact) == ["app.py", "both/gone.py", "own/new.py", "own/deep/b.py"]


def test_a_build_can_be_asked_for(project: Path, version: Callable[..., str]) -> None:
    assert version() == "first"
    edit(project, "second")
    assert version(build="always") == "second"


def test_a_stack_keeps_the_artifact_it_started_with(
    project: Path, version: Callable[..., str], new_client: Callable[..., Any]
) -> None:
    with LocalStack(template=project / "one.yaml") as stack:
        (old,) = cache_folder(project).glob("WorkerFunction-*/")
        edit(project, "second")
        assert version(build="stale") == "second"
        response = new_client(stack).invoke(
            FunctionName="WorkerFunction", Payload=json.dumps({"do": "describe"})
        )
        assert json.loads(response["Payload"].read())["version"] == "first"
    edit(project, "third")
    assert version(build="stale") == "third"
    assert not old.exists()
    assert len(list(cache_folder(project).glob("WorkerFunction-*/"))) == 1


def test_a_build_that_fails_says_why_and_leaves_the_old_artifact(project: Path) -> None:
    LocalStack(template=project / "one.yaml")
    assert not cache_folder(project).exists()  # nothing is built before start
    with LocalStack(template=project / "one.yaml"):
        pass
    (project / "Makefile").write_text("build-%:\n\t@echo no compiler here; exit 1\n")
    with pytest.raises(BuildFailed, match=r"make build-WorkerFunction failed .*no compiler here"):
        LocalStack(template=project / "one.yaml", build="always").start()
    assert (cache_folder(project) / "WorkerFunction" / "app.py").exists()
    shutil.rmtree(project / ".aws-sam")
    (project / "Makefile").write_text("build-%:\n\t@true\n")
    with pytest.raises(BuildFailed, match="wrote nothing"):
        LocalStack(template=project / "one.yaml").start()


def test_the_runtime_folder_holds_what_lambda_brings_and_nothing_else(tmp_path: Path) -> None:
    names = {path.name.partition(".")[0] for path in link_runtime(tmp_path / "r").iterdir()}
    assert {"awslambdaric", "boto3", "botocore"} <= names
    assert not names & {"numpy", "polarlambda", "moto", "pytest"}
