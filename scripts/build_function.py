"""Build the artifact of one Lambda function: its sources, NumPy and botocore, and nothing else.

Called by `make build-<LogicalId>`, which `sam build` runs for every function of template.yaml and
the local stack runs for its own interpreter:

    python scripts/build_function.py WorkerFunction ARTIFACTS_DIR --python 3.12

The function of an objective (scripts/new_objective.py) is built with `--code FOLDER`: the folder's
modules go in as well, and what its requirements.txt names.

Cold start is a straggler, so an artifact is small (tests, type stubs and the models of other AWS
services are left out) and comes compiled where an interpreter of the right version is at hand;
.pyc files of any other version would be ballast. The same sources and versions give the same
bytes.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from interpreters import find_python

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements" / "function.txt"
DEPENDENCIES = ROOT / ".aws-sam" / "dependencies"
RECORD = "build.json"

FUNCTIONS = {
    "WorkerFunction": "worker",
    "CoordinatorFunction": "coordinator",
    "EncodeFunction": "encode",
    "DecodeFunction": "decode",
    "DispatchFunction": "dispatch",
    "ObjectiveFunction": "objective",
}
OF_AN_OBJECTIVE = ("__pycache__", ".*", "test_*.py", "Makefile", "template.yaml", "samconfig.toml")
MOST_BYTES = 250 << 20  # Lambda's limit for an unzipped package
LAYERS = ("polarcodes", "blockstore", "encoder", "coordinator")
ARCHITECTURES = {"x86_64": "x86_64", "arm64": "aarch64"}

# Paths inside the installed dependencies that no handler reads. f2py, the headers and the static
# libraries serve people who compile against NumPy.
UNUSED = (
    "bin",
    "numpy/**/tests",
    "numpy/_core/include",
    "numpy/_core/lib",
    "numpy/_pyinstaller",
    "numpy/f2py",
    "numpy/random/_examples",
    "numpy/random/lib",
    "**/*.pyi",
    "**/*.pxd",
    "**/py.typed",
    "**/__pycache__",
)
# What an objective's own packages may import of these, and what they need not bring either.
NEEDED_BY_OTHERS = ("numpy/f2py",)  # scipy imports it
UNUSED_OF_OTHERS = ("*/**/tests",)
# botocore carries the models of 400 services. These are the ones we call and what any client reads.
BOTOCORE_DATA = {
    "s3",
    "lambda",
    "endpoints.json",
    "partitions.json",
    "_retry.json",
    "sdk-default-configuration.json",
}
# Licences ask to be passed on; the version is for people.
DIST_INFO = ("METADATA", "LICENSE*", "licenses", "NOTICE*")


def main() -> None:
    """Read the command line, build the artifact, print its size."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("function", choices=FUNCTIONS)
    parser.add_argument("artifacts", type=Path)
    parser.add_argument("--python", default="3.12", help="version of the interpreter that runs it")
    parser.add_argument(
        "--architecture",
        default="x86_64",
        choices=[*ARCHITECTURES, "host"],
        help="the template's Architecture, or host: whatever this machine is",
    )
    parser.add_argument("--code", type=Path, help="an objective's folder")
    options = parser.parse_args()
    build(options.function, options.artifacts, options.python, options.architecture, options.code)


def build(
    function: str, artifacts: Path, python: str, architecture: str, code: Path | None = None
) -> None:
    """Fill `artifacts` with what `function` needs on the given interpreter.

    Replaces an older artifact and refuses a folder that holds anything else. Costs one installation
    per set of versions (kept under .aws-sam/dependencies), then a copy of 60 MB.
    """
    clear(artifacts)
    shutil.copytree(dependencies(python, architecture, code), artifacts, dirs_exist_ok=True)
    if code is not None:
        ignored = shutil.ignore_patterns(*OF_AN_OBJECTIVE)
        shutil.copytree(code, artifacts, ignore=ignored, dirs_exist_ok=True)
    folder = FUNCTIONS[function]
    packages = first_party(ROOT / "functions" / folder)
    for package in packages:
        copy_package(ROOT / package, artifacts / package)
    for marker in (ROOT / "functions").glob("*.py"):  # the package's own __init__, if it has one
        (artifacts / "functions").mkdir(exist_ok=True)
        shutil.copyfile(marker, artifacts / "functions" / marker.name)
    copy_package(ROOT / "functions" / folder, artifacts / "functions" / folder)
    compiled = compile_sources(artifacts, python)
    record = {"function": function, "python": python, "architecture": architecture}
    (artifacts / RECORD).write_text(json.dumps(record) + "\n")
    files = [path for path in artifacts.rglob("*") if path.is_file()]
    megabytes = sum(path.stat().st_size for path in files) / 1e6
    if megabytes * 1e6 > MOST_BYTES:
        sys.exit(
            f"{function}: {megabytes:.0f} MB unzipped, Lambda takes {MOST_BYTES / 1e6:.0f}: "
            "require fewer packages"
        )
    print(
        f"{function}: {len(files)} files, {megabytes:.1f} MB, Python {python}, {architecture}, "
        + ("compiled" if compiled else f"not compiled (no Python {python} on this machine)")
    )


def clear(artifacts: Path) -> None:
    """Make `artifacts` an empty folder, unless it holds something this script did not put there."""
    if artifacts.exists() and any(artifacts.iterdir()):
        if not (artifacts / RECORD).is_file():
            sys.exit(f"{artifacts} is not empty and no artifact; give another ARTIFACTS_DIR.")
        shutil.rmtree(artifacts)
    artifacts.mkdir(parents=True, exist_ok=True)


def first_party(folder: Path) -> list[str]:
    """Layers that the modules of `folder` import, directly or through one another, sorted."""
    found: set[str] = set()
    waiting = [folder]
    while waiting:
        for name in imported_packages(waiting.pop()):
            if name in LAYERS and name not in found:
                found.add(name)
                waiting.append(ROOT / name)
    return sorted(found)


def imported_packages(folder: Path) -> Iterator[str]:
    """Top-level names that the Python files below `folder` import by absolute name."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(), filename=str(path))):
            if isinstance(node, ast.Import):
                yield from (alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                yield node.module.split(".")[0]


def copy_package(source: Path, target: Path) -> None:
    """Copy a package of ours without what the host's interpreter compiled."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))


def dependencies(python: str, architecture: str, code: Path | None = None) -> Path:
    """Folder with the pruned third-party packages, installed once per set of versions."""
    parts = [REQUIREMENTS.read_bytes(), Path(__file__).read_bytes(), python.encode()]
    parts.append(architecture.encode())
    wanted = None if code is None else requirements_of(code)
    if wanted is not None:
        parts.append(wanted.read_bytes())
    folder = DEPENDENCIES / hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
    if folder.exists():
        return folder
    DEPENDENCIES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=DEPENDENCIES, prefix="installing-") as scratch:
        installed = Path(scratch) / "installed"
        install(installed, python, architecture, wanted)
        prune(installed, others=wanted is not None)
        try:
            installed.rename(folder)
        except OSError:
            if not folder.exists():  # else another build was first with the same content
                raise
    return folder


def requirements_of(code: Path) -> Path | None:
    """An objective's requirements.txt; None if there is none, or nothing in it."""
    path = code / "requirements.txt"
    lines = path.read_text().splitlines() if path.is_file() else []
    return path if any(line.strip() and not line.startswith("#") for line in lines) else None


def install(target: Path, python: str, architecture: str, wanted: Path | None = None) -> None:
    """Install the pinned wheels for another interpreter and machine than this one, and with
    `wanted`, an objective's requirements, theirs and what those need."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile"]
    command += ["--only-binary=:all:", "--implementation=cp", f"--python-version={python}"]
    command += [f"--target={target}", f"--requirement={REQUIREMENTS}"]
    command += ["--no-deps"] if wanted is None else [f"--requirement={wanted}"]
    if architecture != "host":
        machine = ARCHITECTURES[architecture]
        # Amazon Linux 2023, which Lambda's Python 3.12 and newer run on, has glibc 2.34.
        command += [f"--platform=manylinux_2_{glibc}_{machine}" for glibc in (28, 27, 17)]
        command += [f"--platform=manylinux2014_{machine}"]
    if subprocess.run(command, check=False).returncode != 0:
        sys.exit(
            f"pip found no wheels for Python {python} on {architecture}; see its message above."
        )


def prune(installed: Path, *, others: bool) -> None:
    """Remove what no handler reads from an installation, which may hold `others`' packages."""
    patterns = UNUSED
    if others:
        patterns = tuple(p for p in UNUSED if p not in NEEDED_BY_OTHERS) + UNUSED_OF_OTHERS
    for pattern in patterns:
        for path in list(installed.glob(pattern)):
            remove(path)
    for path in (installed / "botocore" / "data").iterdir():
        if path.name.removesuffix(".gz") not in BOTOCORE_DATA:
            remove(path)
    for info in installed.glob("*.dist-info"):
        for path in list(info.iterdir()):
            if not any(path.match(pattern) for pattern in DIST_INFO):
                remove(path)


def remove(path: Path) -> None:
    """Remove a file or a folder; a folder may have taken it along already."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def compile_sources(artifacts: Path, python: str) -> bool:
    """Compile every module with the interpreter that will run it; False where there is none.

    Unchecked hashes: Lambda's file times are not ours, and nothing needs checking in a folder that
    nobody writes. Paths are made relative to the task root, so that two builds give the same bytes.
    """
    interpreter = find_python(python)
    if interpreter is None:
        return False
    command = [interpreter, "-m", "compileall", "-q", "--invalidation-mode=unchecked-hash"]
    command += ["-s", str(artifacts), str(artifacts)]
    # A hash seed of its own would let the order of set constants differ from build to build.
    subprocess.run(command, check=True, env=os.environ | {"PYTHONHASHSEED": "0"})
    return True


if __name__ == "__main__":
    main()
