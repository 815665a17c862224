"""Create the environments of a checkout, side by side; does nothing for those that are up to date.

`make setup` runs this with the machine's own Python. Three environments, because their packages
exclude each other: .venv (the product, its tests and its tools), .venv-sam (the SAM CLI) and
.venv-ministack (the local AWS that the deploy test deploys to; Python 3.12 or newer). pip alone
is enough; uv is used where it is present.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from interpreters import find_python

ROOT = Path(__file__).resolve().parent.parent
MINISTACK_PYTHONS = ("3.12", "3.13", "3.14")
SILENCE_SECONDS = 20.0  # after which a person would like to hear that it still goes on
IN_CI = bool(os.environ.get("CI"))


class SetupError(Exception):
    """An environment could not be made; the message says what to do."""


@dataclass(frozen=True)
class Environment:
    """One virtual environment: its folder, what goes in, and the file that pins every version."""

    folder: str
    packages: tuple[str, ...]
    constraints: str
    inputs: tuple[str, ...] = ()  # further files whose change makes it out of date

    @property
    def stamp(self) -> Path:
        """The file that says what the environment was made from, once it is complete."""
        return ROOT / self.folder / "made-from"

    def digest(self, python: str) -> str:
        """Changes when anything that the environment is made from does."""
        parts = [python, *self.packages]
        parts += [(ROOT / name).read_text() for name in (self.constraints, *self.inputs)]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


MAIN = Environment(".venv", ("--editable", ".[dev]"), "requirements/host.txt", ("pyproject.toml",))
SAM = Environment(".venv-sam", ("aws-sam-cli",), "requirements/sam.txt")
MINISTACK = Environment(
    ".venv-ministack",
    ("ministack", "aws-sam-translator"),  # the second expands SAM templates
    "requirements/ministack.txt",
)


def main() -> None:
    """Make what is out of date, in parallel; exit 1 when .venv or .venv-sam cannot be made."""
    check_host()
    wanted = {MAIN: sys.executable, SAM: sys.executable}
    python = newer_python()
    if python is not None:
        wanted[MINISTACK] = python
    failures = make_all({env: path for env, path in wanted.items() if not up_to_date(env, path)})
    if failures:
        sys.exit("\n".join(failures))
    if python is None:
        say_no_newer_python()


def make_all(wanted: dict[Environment, str]) -> list[str]:
    """Make the environments side by side, saying now and then that it goes on; what failed."""
    if not wanted:
        print("setup: the environments are up to date", flush=True)
        return []
    folders = ", ".join(environment.folder for environment in wanted)
    print(
        f"setup: installing packages into {folders} here: two or three minutes with pip", flush=True
    )
    failures = []
    with ThreadPoolExecutor() as pool:
        going = {pool.submit(make, *item): item[0].folder for item in wanted.items()}
        while going:
            done, _ = wait(going, timeout=SILENCE_SECONDS, return_when=FIRST_COMPLETED)
            if not done:
                print(f"setup: still at {' and '.join(going.values())} ...", flush=True)
            for future in done:
                del going[future]
                try:
                    future.result()
                except SetupError as failure:
                    failures.append(str(failure))
    return failures


def check_host() -> None:
    """Refuse a Python that cannot make environments; Debian ships it in two parts."""
    if shutil.which("uv"):
        return
    command = [sys.executable, "-c", "import ensurepip, venv"]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        sys.exit(
            f"{sys.executable} cannot make virtual environments: its venv and pip parts are "
            "missing. On Debian and Ubuntu: sudo apt-get install python3-venv"
        )


def newer_python() -> str | None:
    """Path of an interpreter that runs MiniStack: the runtime's version first.

    In CI, where the deploy test must run, one is fetched where the machine has none.
    """
    found = next(filter(None, map(find_python, MINISTACK_PYTHONS)), None)
    if found is None and IN_CI:
        wanted = MINISTACK_PYTHONS[0]
        try:
            run(MINISTACK, [fetcher(), "python", "install", wanted])
            found = find_python(wanted)
        except SetupError as failure:
            print(failure, file=sys.stderr)
    return found


def fetcher() -> str:
    """Path of a uv: the machine's, else one from pip in an environment of its own."""
    uv = shutil.which("uv")
    if uv is None:
        folder = ROOT / ".venv-uv"
        run(MINISTACK, [sys.executable, "-m", "venv", str(folder)])
        run(MINISTACK, [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "uv"])
        uv = str(folder / "bin" / "uv")
        os.environ["PATH"] += os.pathsep + str(folder / "bin")  # find_python asks it
    return uv


def say_no_newer_python() -> None:
    """What is missing without Python 3.12, and how to get it."""
    print(
        "setup: no Python 3.12 or newer on this machine (looked on PATH, in pyenv and in uv), so "
        "`make test` leaves the deploy test out (it needs .venv-ministack). Everything else works. "
        "To add one: `uv python install 3.12` or `pyenv install 3.12`, then `make setup`.",
        file=sys.stderr,
    )


def up_to_date(environment: Environment, python: str) -> bool:
    """Whether its stamp says that it was made from what is asked now."""
    stamp = environment.stamp
    return stamp.is_file() and stamp.read_text() == environment.digest(python)


def make(environment: Environment, python: str) -> None:
    """Create one environment and install its packages."""
    folder = ROOT / environment.folder
    started = time.monotonic()
    uv = shutil.which("uv")
    inside = str(folder / "bin" / "python")
    pinned = ["--constraint", environment.constraints, *environment.packages]
    if uv:
        if not Path(inside).exists():
            run(environment, [uv, "venv", "--quiet", "--seed", "--python", python, str(folder)])
        run(environment, [uv, "pip", "install", "--quiet", "--python", inside, *pinned])
    else:
        run(environment, [python, "-m", "venv", str(folder)])
        # What is imported is compiled then; compiling everything takes as long as installing it.
        run(environment, [inside, "-m", "pip", "install", "--quiet", "--no-compile", *pinned])
    environment.stamp.write_text(environment.digest(python))
    print(f"setup: {environment.folder} ready in {time.monotonic() - started:.0f} s", flush=True)


def run(environment: Environment, command: list[str]) -> None:
    """Run one installation step; its output is shown only when it fails."""
    quiet = os.environ | {"PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    done = subprocess.run(
        command,
        check=False,
        cwd=ROOT,
        env=quiet,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode != 0:
        lines = "\n".join(done.stdout.splitlines()[-15:])
        raise SetupError(f"{lines}\nsetup: {environment.folder} failed at: {' '.join(command)}")


if __name__ == "__main__":
    main()
