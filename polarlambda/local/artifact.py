"""Built functions: the artifacts that ``make build-<LogicalId>`` leaves, as SAM's own builder
calls it.

Kept under ``.aws-sam/local/<python>/<LogicalId>`` and built when absent, or when asked. An edit
of the sources changes nothing until the next build: what runs is what would be deployed.

The environments run on this interpreter (the one that has awslambdaric, whose C extension fits
one version of Python), so the artifact is built for it; ``Runtime`` of the template is for AWS.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from polarlambda.local.errors import BuildFailed, LocalStackError

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
_LOG = logging.getLogger("polarlambda.local")
Build = Literal["absent", "stale", "always"]
# what the Lambda runtime has on its path besides the function: its own client, and boto3
_RUNTIME_MODULES = (
    *("awslambdaric", "runtime_client", "simplejson", "snapshot_restore_py"),
    *("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six", "urllib3"),
)


def cache_folder(root: Path) -> Path:
    """Where the artifacts for this interpreter are kept."""
    return root / ".aws-sam" / "local" / f"python{PYTHON}"


def provide(root: Path, logical_id: str, build: Build = "absent", runtime: str = "") -> Path:
    """The artifact of ``logical_id``, built now if it has to be; raises BuildFailed."""
    artifact = cache_folder(root) / logical_id
    with _locked(artifact.with_suffix(".lock")):
        wanted = build == "always" or not artifact.is_dir()
        if wanted or (build == "stale" and stale_files(root, artifact)):
            _LOG.info(
                "building %s for Python %s, which runs it here (%s on AWS)",
                *(logical_id, PYTHON, runtime or "another"),
            )
            _make(root, logical_id, artifact)
    return artifact


def stale_files(root: Path, artifact: Path) -> list[str]:
    """Files of the artifact that differ from the sources at the same place, relative to
    ``root``. A package that only the artifact has is not a source of ours; a source that the
    artifact left out is not missed.
    """
    ours = [path for path in artifact.iterdir() if (root / path.name).exists()]
    files = [f for top in ours for f in ([top] if top.is_file() else sorted(top.rglob("*")))]
    changed = []
    for file in files:
        relative = file.relative_to(artifact)
        if not file.is_file() or file.suffix == ".pyc":
            continue
        source = root / relative
        if not source.is_file() or source.read_bytes() != file.read_bytes():
            changed.append(str(relative))
    return changed


def _make(root: Path, logical_id: str, artifact: Path) -> None:
    if shutil.which("make") is None:
        raise BuildFailed("make is not installed: the functions cannot be built without it")
    with tempfile.TemporaryDirectory(dir=artifact.parent, prefix=f".{logical_id}-") as scratch:
        fresh = Path(scratch) / "new"
        fresh.mkdir()
        command = ["make", "-s", f"build-{logical_id}", f"ARTIFACTS_DIR={fresh}"]
        done = subprocess.run(
            [*command, f"PYTHON_VERSION={PYTHON}", "ARCHITECTURE=host"],
            cwd=root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        if done.returncode != 0 or not any(fresh.iterdir()):
            said = [line for line in done.stdout.splitlines() if not line.startswith("make")]
            reason = said[-1].strip() if said else "it wrote nothing"
            raise BuildFailed(f"make build-{logical_id} failed in {root}: {reason}")
        if artifact.exists():
            artifact.rename(Path(scratch) / "old")  # environments that run keep their open files
        fresh.rename(artifact)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One builder at a time; the lock goes with its process."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def link_runtime(folder: Path) -> Path:
    """Make ``folder``, holding links to what the Lambda runtime brings and nothing else of our
    site-packages.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for module in _RUNTIME_MODULES:
        spec = find_spec(module)
        if spec is None or spec.origin is None:
            if module == "awslambdaric":
                raise LocalStackError("awslambdaric is missing: pip install 'polarlambda[local]'")
            continue
        origin = Path(spec.origin)
        target = origin.parent if origin.name == "__init__.py" else origin
        if not (folder / target.name).exists():
            os.symlink(target, folder / target.name)
    return folder
