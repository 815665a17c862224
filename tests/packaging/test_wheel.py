"""What `pip install polarlambda` brings, and how light its import is."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel of this checkout, built from a copy so that no build folder is left in it."""
    folder = tmp_path_factory.mktemp("wheel")
    tracked = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, tracked.split("\0")):
        if (ROOT / name).is_file():
            copy = folder / "source" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    done = subprocess.run(
        [*command, f"--wheel-dir={folder}", str(folder / "source")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    [path] = folder.glob("polarlambda-*.whl")
    return zipfile.ZipFile(path)


def test_it_holds_five_packages_and_not_what_lambda_runs(wheel: zipfile.ZipFile) -> None:
    folders = {name.split("/")[0] for name in wheel.namelist()}
    packages = {name for name in folders if not name.endswith(".dist-info")}
    assert packages == {"polarcodes", "blockstore", "encoder", "coordinator", "polarlambda"}


def test_it_holds_the_data_that_the_packages_read(wheel: zipfile.ZipFile) -> None:
    for package in ("polarcodes", "blockstore", "encoder", "coordinator", "polarlambda"):
        data = {
            str(path.relative_to(ROOT))
            for path in (ROOT / package).rglob("*")
            if path.is_file() and path.suffix not in (".pyc", ".py")
        }
        assert data <= set(wheel.namelist())


def test_it_brings_the_command(wheel: zipfile.ZipFile) -> None:
    [entry] = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    assert "polarlambda = polarlambda.cli:main" in wheel.read(entry).decode()


def test_importing_the_package_brings_neither_aws_nor_pictures() -> None:
    heavy = ("boto3", "botocore", "click", "matplotlib", "moto", "rich", "scipy", "skimage")
    code = f"import polarlambda, sys; print(*(set({heavy!r}) & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
