"""The benchmarks of optimisation run once per test run, small, so that they cannot rot."""

from __future__ import annotations

import json
import sys

import pytest

from benchmarks import directions, harness, optimization


@pytest.fixture(autouse=True)
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(sys, "argv", ["benchmark", "--small"])
    monkeypatch.delenv("POLARLAMBDA_DELAYS", raising=False)
    return tmp_path / "results"


def test_measured_gradient_errors_are_those_of_the_formula(results, capsys):
    assert directions.main() == 0
    rows = json.loads((results / "directions.json").read_text())["rows"]
    assert len(capsys.readouterr().out.splitlines()) == len(rows) + 2
    for row in rows:  # four draws: a bound that a wrong formula would still break
        assert row["unbiased"] == pytest.approx(row["formula"], rel=0.3, abs=1e-3)


def test_coded_directions_reach_the_target_before_those_that_wait_for_all(results, capsys):
    assert optimization.main() == 0
    rows = json.loads((results / "optimization.json").read_text())["rows"]
    assert "coded, wait for p" in capsys.readouterr().out
    for times in {row["times"] for row in rows}:
        seconds = {
            row["scheme"]: row["taken"]["seconds"]
            for row in rows
            if row["times"] == times and row["taken"] is not None
        }
        assert seconds["coded, wait for p"] < seconds["structured, wait for all 128"]
