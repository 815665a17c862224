"""What README.md tells a newcomer to type is typed here, and must do what it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
RUN = re.compile(r"\b[0-9a-hjkmnp-tv-z]{26}\b")
CHECK = re.compile(r"checked against [^,]*|not verified: [^,]*")
NUMBER = re.compile(r"\d+(\.\d+)?")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[tuple[str, list[str]]]:
    """(command, lines shown below it) of a console block."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def shape_of(line: str) -> str:
    """The line without what differs from run to run: ids, figures, and whether the answers that
    came first left an equation over to check."""
    return CHECK.sub("CHECK", NUMBER.sub("0", RUN.sub("RUN", line))).strip()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder with the script that the README shows."""
    path = tmp_path_factory.mktemp("readme")
    (script,) = (text for text in blocks("sh") if text.startswith("polarlambda encode A.npy"))
    (path / "product.sh").write_text(f"set -e\n{script}")
    return path


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    commands_first = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=os.environ | {"PATH": commands_first},
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_console_commands_do_what_the_readme_shows(folder: Path) -> None:
    shown = 0
    for block in blocks("console"):
        for command, expected in commands(block):
            done = run(command, folder)
            assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
            printed = {shape_of(line) for line in (done.stdout + done.stderr).splitlines()}
            for line in expected:
                assert shape_of(line) in printed, f"{command}\nprinted {sorted(printed)}"
                shown += 1
    assert shown >= 4


def test_python_example_gives_the_exact_product(folder: Path) -> None:
    (example,) = blocks("python")
    (folder / "example.py").write_text(example)
    done = run("polarlambda local run -- python example.py", folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "True True"


def test_training_example_trains_with_dead_workers(folder: Path) -> None:
    (script,) = (text for text in blocks("sh") if text.startswith("polarlambda data digits"))
    (command,) = re.findall(r"`(polarlambda local run [^`]*bash train.sh)`", README)
    (folder / "train.sh").write_text(f"set -e\n{script.rstrip()} --iterations 1\n")
    done = run(command, folder)
    assert done.returncode == 0, done.stderr
    assert "iterations after 1 iteration " in done.stdout
    assert (folder / "theta.npy").exists() and (folder / "digits.png").exists()


def test_links_lead_somewhere() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", README)
    missing = [t for t in targets if not t.startswith("http") and not (ROOT / t).exists()]
    assert targets
    assert missing == []


@pytest.mark.parametrize("target", ["demo", "test"])
def test_the_two_commands_are_targets_of_the_makefile(target: str) -> None:
    assert f"make {target}" in README
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
