"""Make a folder with an objective for `polarlambda optimize`: code, tests, template.

    python scripts/new_objective.py FOLDER MODULE:FUNCTION [--from FILE.py] [--requirement PACKAGE]
    python scripts/new_objective.py FOLDER --example cartpole

The folder holds everything that the function is built and deployed from, apart from polarlambda's
own handler, which the build copies from this checkout. A module that is not given begins as a
worked example. Nothing is overwritten.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples"
TEMPLATES = Path(__file__).resolve().parent / "objective"
STACK_NAME = re.compile(r"[a-z][a-z0-9-]{0,26}")


def main() -> None:
    """Read the command line, make the folder, say what comes next."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="its last part names the stack")
    parser.add_argument(
        "objective", nargs="?", help="module:function, a module of one file in the folder"
    )
    parser.add_argument("--example", help="one of those in examples/, ready to run")
    parser.add_argument("--from", dest="source", type=Path, help="the module, to be copied")
    parser.add_argument(
        "--requirement", action="append", default=[], help="a package it imports; may be repeated"
    )
    parser.add_argument("--start", default="zeros:3", help="numbers, for the tests and the README")
    parser.add_argument("--memory", type=int, default=1769, help="MB of an evaluation")
    parser.add_argument("--timeout", type=int, default=60, help="seconds of an evaluation")
    make(parser.parse_args())


def make(options: argparse.Namespace) -> None:
    """Write the folder; exits with a line that says what to change."""
    folder: Path = options.folder
    if options.example is not None:
        take_example(options)
    if options.objective is None:
        refuse("name an objective, module:function, or an --example")
    module, _, function = options.objective.partition(":")
    if not (module.isidentifier() and function.isidentifier()):
        refuse(f"objective must be module:function with a module of one file: {options.objective}")
    if not STACK_NAME.fullmatch(folder.name):
        refuse(
            f"the folder's name becomes that of a stack: a lower-case letter and up to 26 more "
            f"letters, digits and dashes, not {folder.name!r}"
        )
    try:
        kind, _, count = options.start.partition(":")
        zeros = [0.0] * int(count) if kind == "zeros" else None
        start = zeros or [float(part) for part in options.start.split(",")]
    except ValueError:
        refuse(f"--start must be numbers such as 0,0,1.5, or zeros:P, not {options.start!r}")
    for name, low, high in (("memory", 256, 10240), ("timeout", 1, 900)):
        if not low <= getattr(options, name) <= high:
            refuse(f"--{name} must be {low} to {high}, not {getattr(options, name)}")
    if options.source is not None and not options.source.is_file():
        refuse(f"--from {options.source}: there is no such file")
    if folder.exists() and any(folder.iterdir()):
        refuse(f"{folder} exists and is not empty: name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    words = {
        "OBJECTIVE": options.objective,
        "FUNCTION": function,
        "MODULE_FILE": f"{module}.py",
        "NAME": folder.name,
        "CHECKOUT": os.path.relpath(ROOT, folder.resolve()),
        "START": repr(start),
        "START_OPTION": options.start,
        "MEMORY": str(options.memory),
        "TIMEOUT": str(options.timeout),
    }
    for template in sorted(TEMPLATES.iterdir()):
        name = template.name.removesuffix(".in")
        name = f"{module}.py" if name == "starter.py" else name
        (folder / name).write_text(filled(template.read_text(), words))
    if options.source is not None:
        shutil.copyfile(options.source, folder / f"{module}.py")
    with (folder / "requirements.txt").open("a") as requirements:
        requirements.writelines(f"{package}\n" for package in options.requirement)
    print(
        f"{folder}: edit {module}.py, then `make -C {folder} test`, and\n"
        f"  polarlambda local run --objective {folder} -- "
        f"polarlambda optimize {options.objective} --start {options.start}"
    )


def take_example(options: argparse.Namespace) -> None:
    """Fill in the module and what it says of itself."""
    source = EXAMPLES / f"{options.example}.py"
    if not source.is_file():
        known = ", ".join(sorted(path.stem for path in EXAMPLES.glob("[a-z]*.py")))
        refuse(f"there is no example {options.example!r}; there are {known}")
    said = {}
    for node in ast.parse(source.read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name in ("OBJECTIVE", "REQUIREMENTS", "START"):
                said[name] = ast.literal_eval(node.value)
    options.source = source
    options.objective = f"{source.stem}:{said['OBJECTIVE']}"
    options.requirement += said["REQUIREMENTS"]
    options.start = said["START"]


def filled(text: str, words: dict[str, str]) -> str:
    """The template with every @WORD@ replaced."""
    return re.sub(r"@([A-Z_]+)@", lambda match: words[match[1]], text)


def refuse(message: str) -> None:
    """Leave with the reason."""
    sys.exit(f"new_objective: {message}")


if __name__ == "__main__":
    main()
