"""Find Python interpreters of a wanted version on this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path


def find_python(version: str) -> str | None:
    """Full path of a working CPython `version` ("3.12"), or None.

    Looked for as this interpreter, on PATH, in pyenv's folder (whose shims on PATH fail for
    versions that are installed but not activated), and among those that uv manages.
    """
    if f"{sys.version_info.major}.{sys.version_info.minor}" == version:
        return sys.executable
    return next((path for path in candidates(version) if reports(path, version)), None)


def candidates(version: str) -> Iterator[str]:
    """Paths that may be an interpreter of `version`, likeliest first."""
    on_path = shutil.which(f"python{version}")
    if on_path:
        yield on_path
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for folder in sorted(pyenv.glob(f"versions/{version}.*")):
        yield str(folder / "bin" / f"python{version}")
    uv = shutil.which("uv")
    if uv:
        command = [uv, "python", "find", "--no-project", "--managed-python", "--offline", version]
        yield subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def reports(path: str, version: str) -> bool:
    """Whether the program at `path` runs and is CPython `version`."""
    if not path:
        return False
    code = "import sys; print(sys.implementation.name, *sys.version_info[:2])"
    try:
        answer = subprocess.run(
            [path, "-c", code], capture_output=True, text=True, timeout=20, check=False
        )
    except OSError:
        return False
    return re.split(r"\s+", answer.stdout.strip()) == ["cpython", *version.split(".")]
