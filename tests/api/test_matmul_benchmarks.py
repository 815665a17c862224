"""The benchmarks of matrix products run once per test run, small, and compute what they should."""

from __future__ import annotations

import json
import os
import sys

import pytest

from benchmarks import harness, matmul, polynomial


@pytest.mark.parametrize("module", [matmul, polynomial])
def test_the_small_run_is_right_and_writes_its_numbers(module, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    monkeypatch.setattr(sys, "argv", ["benchmark", "--small"])
    before = dict(os.environ)
    try:
        assert module.main() == 0
    finally:
        os.environ.clear()
        os.environ.update(before)
    name = module.__name__.rpartition(".")[2]
    rows = json.loads((tmp_path / f"{name}.json").read_text())["rows"]
    printed = capsys.readouterr().out
    if module is matmul:
        assert rows[0]["way"] == "both coded" and len(rows) == 3
        assert all(row["peak_memory"] <= row["memory_bound"] for row in rows)
        both, _, alone = rows
        assert both["stored_bytes"] > 0 and alone["read_bytes"] > both["read_bytes"]
    else:
        codes = {row["code"]: row for row in rows if row["workers"] == 25}
        grid = codes["grid of Hadamard codes"]
        assert grid["storage"] < min(r["storage"] for r in codes.values() if r is not grid)
        assert grid["worst_error"] < 1e-9
    assert all(row["code" if module is polynomial else "way"] in printed for row in rows)
