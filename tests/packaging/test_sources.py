"""Rules about the sources that no linter knows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("polarcodes", "blockstore", "encoder", "coordinator", "functions", "polarlambda")
# Settings are read once, at the edge; the demo is one too: it points the process at its own stack.
EDGES = ("functions/", "polarlambda/settings.py", "polarlambda/local/", "polarlambda/demo/")
SOURCES = sorted(
    str(path.relative_to(ROOT)) for package in PACKAGES for path in (ROOT / package).rglob("*.py")
)


@pytest.mark.parametrize("source", [name for name in SOURCES if not name.startswith(EDGES)])
def test_the_environment_is_read_at_the_edge_only(source: str) -> None:
    assert not {"environ", "environb", "getenv"} & set(_names(source))


@pytest.mark.parametrize("source", SOURCES)
def test_nothing_is_pickled(source: str) -> None:
    names = set(_names(source))
    assert not {"pickle", "marshal", "shelve", "dill", "cloudpickle"} & names
    for node in ast.walk(ast.parse((ROOT / source).read_text())):
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            assert isinstance(node.value, ast.Constant) and node.value.value is False


@pytest.mark.parametrize("source", SOURCES)
def test_a_file_is_one_concept_that_fits_on_a_few_screens(source: str) -> None:
    assert len((ROOT / source).read_text().splitlines()) < 300


def _names(source: str) -> Iterator[str]:
    """Names, attributes and imported modules of a file."""
    for node in ast.walk(ast.parse((ROOT / source).read_text())):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from (alias.name for alias in node.names)
            if isinstance(node, ast.ImportFrom) and node.module:
                yield from node.module.split(".")
