"""The folder that Lambda runs: what is in it, what is not, and that it works by itself."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOST = f"{sys.version_info.major}.{sys.version_info.minor}"
FUNCTIONS = {
    "WorkerFunction": "worker",
    "CoordinatorFunction": "coordinator",
    "DecodeFunction": "decode",
    "DispatchFunction": "dispatch",
}
ZIP_LIMIT = 50e6  # of an upload to Lambda
UNZIPPED_LIMIT = 250e6


def make(target: str, artifacts: Path, python: str = "", **variables: str) -> str:
    """Run a build target as SAM does; its output. Without `python`, for the template's Runtime."""
    settings = {"ARTIFACTS_DIR": str(artifacts), **variables}
    if python:
        settings["PYTHON_VERSION"] = python
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        ["make", target, *(f"{name}={value}" for name, value in settings.items())],
        cwd=ROOT,
        env=inherited,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stdout + done.stderr)
    return done.stdout


@pytest.fixture(scope="module", params=FUNCTIONS)
def artifact(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A function built for the interpreter that runs these tests."""
    folder: Path = tmp_path_factory.mktemp(request.param) / "artifact"
    make(f"build-{request.param}", folder, HOST, ARCHITECTURE="host")
    return folder


def test_the_handler_imports_with_nothing_but_the_artifact(artifact: Path) -> None:
    name = FUNCTIONS[json.loads((artifact / "build.json").read_text())["function"]]
    code = (
        "import sys; sys.path.insert(0, '.')\n"
        f"import functions.{name}.app as app\n"
        "import botocore.session\n"
        "session = botocore.session.get_session()\n"
        "for service in ('s3', 'lambda'):\n"
        "    session.create_client(service, region_name='us-east-1')\n"
        "here = __import__('os').getcwd()\n"
        "outside = {name for name, module in sys.modules.items()\n"
        "           if 'site-packages' in (getattr(module, '__file__', None) or '')\n"
        "           and not module.__file__.startswith(here)}\n"
        "assert callable(app.handler) and not outside, outside"
    )
    settings = {"POLARLAMBDA_BUCKET": "bucket", "POLARLAMBDA_WORKER": "worker"}
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code],
        cwd=artifact,
        env={"PATH": os.environ["PATH"], **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_it_holds_the_layers_that_the_function_needs(artifact: Path) -> None:
    ours = {"polarcodes", "blockstore", "encoder", "coordinator", "polarlambda", "functions"}
    present = ours & {path.name for path in artifact.iterdir()}
    if (artifact / "functions" / "worker").exists():
        assert present == {"blockstore", "functions"}
    else:
        assert present == {"polarcodes", "blockstore", "coordinator", "functions"}
    [folder] = [p for p in (artifact / "functions").iterdir() if p.name in FUNCTIONS.values()]
    assert (folder / "app.py").is_file()


def test_it_is_small_and_holds_no_ballast(artifact: Path) -> None:
    files = [path for path in artifact.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < UNZIPPED_LIMIT / 3
    ballast = [
        path.relative_to(artifact)
        for path in files
        if path.suffix in (".pyi", ".pxd", ".a", ".h") or "tests" in path.parts
    ]
    assert ballast == []
    services = {path.name for path in (artifact / "botocore" / "data").iterdir() if path.is_dir()}
    assert services == {"s3", "lambda"}


def test_it_passes_the_licences_on(artifact: Path) -> None:
    [numpy] = artifact.glob("numpy-*.dist-info")
    assert list(numpy.rglob("LICENSE*"))


def test_every_module_is_compiled_for_the_interpreter_that_runs_it(artifact: Path) -> None:
    tag = sys.implementation.cache_tag
    modules = {path for path in artifact.rglob("*.py")}
    compiled = {path for path in artifact.rglob("*.pyc")}
    assert compiled == {path.parent / "__pycache__" / f"{path.stem}.{tag}.pyc" for path in modules}
    for path in compiled:
        flags = int.from_bytes(path.read_bytes()[4:8], "little")
        assert flags == 0b01, "an unchecked hash, since file times do not survive the zip"


def test_the_same_sources_give_the_same_bytes(artifact: Path, tmp_path: Path) -> None:
    function = json.loads((artifact / "build.json").read_text())["function"]
    make(f"build-{function}", tmp_path / "again", HOST, ARCHITECTURE="host")
    assert _digests(artifact) == _digests(tmp_path / "again")


def test_a_build_replaces_an_artifact_and_nothing_else(artifact: Path, tmp_path: Path) -> None:
    function = json.loads((artifact / "build.json").read_text())["function"]
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    with pytest.raises(RuntimeError, match="is not empty and no artifact"):
        make(f"build-{function}", folder, HOST, ARCHITECTURE="host")
    assert (folder / "thesis.txt").read_text() == "years of work"

    again = tmp_path / "artifact"
    make(f"build-{function}", again, HOST, ARCHITECTURE="host")
    (again / "functions" / "stale.py").write_text("")
    make(f"build-{function}", again, HOST, ARCHITECTURE="host")
    assert not (again / "functions" / "stale.py").exists()


@pytest.mark.parametrize(("architecture", "machine"), [("x86_64", 0x3E), ("arm64", 0xB7)])
def test_an_artifact_is_for_the_processor_that_was_asked_for(
    tmp_path: Path, architecture: str, machine: int
) -> None:
    make("build-WorkerFunction", tmp_path / "artifact", ARCHITECTURE=architecture)
    libraries = list((tmp_path / "artifact" / "numpy").rglob("*.so"))
    assert libraries
    for path in libraries:
        with path.open("rb") as file:
            header = file.read(20)
        assert header[:4] == b"\x7fELF"
        assert int.from_bytes(header[18:20], "little") == machine
        assert ".cpython-312-" in path.name
    with zipfile.ZipFile(tmp_path / "artifact.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in (tmp_path / "artifact").rglob("*"):
            archive.write(path)
    assert (tmp_path / "artifact.zip").stat().st_size < ZIP_LIMIT / 2


def test_a_python_without_wheels_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"no wheels for Python 3\.7 on x86_64"):
        make("build-WorkerFunction", tmp_path / "artifact", python="3.7")


def _digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }
