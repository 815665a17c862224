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
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Literal

from polarlambda.local.errors import BuildFailed, LocalStackError

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}"
_FOR_THIS_MACHINE = (f"PYTHON_VERSION={PYTHON}", "ARCHITECTURE=host")
_LOG = logging.getLogger("polarlambda.local")
Build = Literal["absent", "stale", "always"]
# what the Lambda runtime has on its path besides the function: its own client, and boto3
_RUNTIME_MODULES = (
    *("awslambdaric", "runtime_client", "simplejson", "snapshot_restore_py"),
    *("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six", "urllib3"),
)


@dataclass
class Artifact:
    """A built function. While it is open, no later build removes its folder."""

    folder: Path
    _lease: IO[str]

    def close(self) -> None:
        """Let the folder go."""
        self._lease.close()


def cache_folder(root: Path) -> Path:
    """Where the artifacts for this interpreter are kept."""
    return root / ".aws-sam" / "local" / f"python{PYTHON}"


def provide(root: Path, logical_id: str, build: Build = "absent", runtime: str = "") -> Artifact:
    """The artifact of ``logical_id``, built now if it has to be; raises BuildFailed."""
    current = cache_folder(root) / logical_id
    with _locked(current.with_suffix(".lock"), fcntl.LOCK_EX):
        if (
            build == "always"
            or not current.is_dir()
            or (build == "stale" and stale_files(root, current))
        ):
            _LOG.info(
                "building %s for Python %s, which runs it here (%s on AWS)",
                *(logical_id, PYTHON, runtime or "another"),
            )
            _make(root, logical_id, current)
        folder = current.resolve()
        return Artifact(folder, _lock(_lease_of(folder), fcntl.LOCK_SH))


def stale_files(root: Path, artifact: Path) -> list[str]:
    """Files that differ between the artifact and the sources at the same place, relative to
    ``root``: changed, gone, or new in a folder that the artifact has. Folders that only one side
    has (NumPy; the other function) are no sources of this artifact.
    """
    changed = []
    for top in sorted(artifact.iterdir()):
        if top.is_file() and (root / top.name).exists():
            changed += [] if _same(top, root / top.name) else [top.name]
        for folder in _folders(top) if (root / top.name).is_dir() else ():
            relative = folder.relative_to(artifact)
            names = _files(folder) | (
                _files(root / relative) if (root / relative).is_dir() else set()
            )
            changed += [
                str(relative / name)
                for name in sorted(names)
                if not _same(folder / name, root / relative / name)
            ]
    return changed


def _folders(top: Path) -> list[Path]:
    folders = [top, *sorted(path for path in top.rglob("*") if path.is_dir())]
    return [folder for folder in folders if folder.name != "__pycache__"] if top.is_dir() else []


def _files(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.is_file() and path.suffix != ".pyc"}


def _same(one: Path, other: Path) -> bool:
    return one.is_file() and other.is_file() and one.read_bytes() == other.read_bytes()


def _make(root: Path, logical_id: str, current: Path) -> None:
    """Build into a folder of its own and point ``current`` there: stacks that run keep theirs."""
    if shutil.which("make") is None:
        raise BuildFailed("make is not installed: the functions cannot be built without it")
    folder = Path(tempfile.mkdtemp(dir=current.parent, prefix=f"{logical_id}-"))
    folder.chmod(0o755)
    done = subprocess.run(
        ["make", "-s", f"build-{logical_id}", f"ARTIFACTS_DIR={folder}", *_FOR_THIS_MACHINE],
        cwd=root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0 or not any(folder.iterdir()):
        shutil.rmtree(folder)
        said = [line for line in done.stdout.splitlines() if not line.startswith("make")]
        reason = said[-1].strip() if said else "it wrote nothing"
        raise BuildFailed(f"make build-{logical_id} failed in {root}: {reason}")
    link = current.with_suffix(".new")
    link.unlink(missing_ok=True)
    link.symlink_to(folder.name)
    link.replace(current)
    for old in current.parent.glob(f"{logical_id}-*/"):
        if old != folder:
            _remove_unless_used(old)


def _remove_unless_used(folder: Path) -> None:
    lease = _lease_of(folder)
    try:
        _lock(lease, fcntl.LOCK_EX | fcntl.LOCK_NB).close()
    except BlockingIOError:
        return
    shutil.rmtree(folder, ignore_errors=True)
    lease.unlink(missing_ok=True)


def _lease_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.used")


def _lock(path: Path, kind: int) -> IO[str]:
    """Open and lock ``path``; the lock goes with the file, so with its process at the latest."""
    file = path.open("w")
    try:
        fcntl.flock(file, kind)
    except BlockingIOError:
        file.close()
        raise
    return file


@contextmanager
def _locked(path: Path, kind: int) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with _lock(path, kind):
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
