"""The benchmarks of encoding at scale run once, small, so that they cannot rot."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import encode_throughput, harness, scale


@pytest.mark.parametrize("module", [encode_throughput, scale])
def test_the_small_run_writes_its_numbers(
    module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["benchmark", "--small"])
    monkeypatch.setattr(os, "environ", os.environ.copy())
    name = module.__name__.rsplit(".", 1)[-1]
    assert harness.main(name, module.__doc__, module.run) == 0
    rows = json.loads((tmp_path / f"{name}.json").read_text())["rows"]
    assert all(row["ratio"] > 0 for row in rows)
    bounds = [row for row in rows if row["name"].endswith("peak / bound")]
    assert all(row["met"] for row in bounds)
    assert len(bounds) == (3 if module is scale else 0)
