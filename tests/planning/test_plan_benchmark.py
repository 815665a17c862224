"""The benchmark that compares plans with functions runs once per test run, small: its requests are
those of the plans, and how long it takes decides nothing."""

from __future__ import annotations

import json

from benchmarks import harness, plans


def test_the_small_run_is_right_and_writes_its_numbers(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    monkeypatch.setattr("sys.argv", ["benchmark", "--small"])
    assert harness.main("plans", plans.__doc__ or "", plans.run) == 0
    rows = json.loads((tmp_path / "plans.json").read_text())["rows"]
    assert len(rows) == 3 and all(row["value"] > 0 for row in rows)
    assert "decode functions" in capsys.readouterr().out
