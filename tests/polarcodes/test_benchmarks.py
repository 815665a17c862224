"""The benchmarks of this package run once per test run, small, so that they cannot rot."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from benchmarks import (
    accuracy,
    codes,
    codes_picture,
    decode,
    encode,
    harness,
    kernels,
    relaunch,
    syndrome,
    thresholds,
)


@pytest.fixture(autouse=True)
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(sys, "argv", ["benchmark", "--small"])
    return tmp_path / "results"


@pytest.mark.parametrize("module", [encode, decode, syndrome])
def test_the_small_run_prints_a_table_and_writes_its_numbers(module, results, capsys):
    name = module.__name__.rsplit(".", 1)[-1]
    assert harness.main(name, module.__doc__, module.run) == 0
    stored = json.loads((results / f"{name}.json").read_text())
    assert stored["small"] is True
    assert stored["machine"]["numpy"] == np.__version__
    printed = capsys.readouterr().out
    for row in stored["rows"]:
        assert row["ratio"] > 0
        assert row["name"] in printed


@pytest.mark.parametrize("module", [accuracy, codes, kernels, relaunch, thresholds])
def test_the_small_tables_are_printed_and_written(module, results, capsys):
    assert module.main() == 0
    name = module.__name__.rsplit(".", 1)[-1]
    rows = json.loads((results / f"{name}.json").read_text())["rows"]
    assert len(rows) >= 10
    assert len(capsys.readouterr().out.splitlines()) == len(rows) + 2


def test_the_picture_has_a_line_or_a_word_for_every_code(tmp_path):
    figures = ("mean", "p99", "encode", "decode", "error_median", "error_worst")
    rows = [
        {"code": code, "workers": workers, **dict.fromkeys(figures, value)}
        for code, value in (("polar", 1.1), ("replication", 1.9), ("a new one", 1.2))
        for workers in (64, 256)
    ]
    codes_picture.draw(rows, tmp_path / "codes.png")
    assert (tmp_path / "codes.png").read_bytes().startswith(b"\x89PNG")


def test_a_wrong_result_is_exit_code_one_and_nothing_is_written(results, capsys):
    def run(small):
        assert small
        harness.require_close("the answer", np.array([1.0, 2.0]), np.array([1.0, 2.1]), 1e-6)

    assert harness.main("wrong", "", run) == 1
    assert "WRONG RESULT: the answer" in capsys.readouterr().out
    assert not results.exists()


def test_a_nan_is_a_wrong_result():
    with pytest.raises(harness.WrongResult):
        harness.require_close("x", np.array([np.nan]), np.array([1.0]), 1e-6)


def test_targets():
    def row(ratio, **target):
        return harness.Ratio("name", ratio, 2.0, 1.0, "s", **target)

    assert row(2.0).met is None
    assert row(2.0, target=2.0).met
    assert not row(2.1, target=2.0).met
    assert row(3.0, target=3.0, at_least=True).met
    assert not row(2.9, target=3.0, at_least=True).met
    shown = harness.table([row(2.1, target=2.0), row(3.0, target=3.0, at_least=True)])
    assert "NOT MET" in shown
    assert ">= 3" in shown


def test_pairs_alternate_and_prepare_runs_before_every_call():
    calls = []
    ratio = harness.time_pairs(
        "x",
        lambda: calls.append("m"),
        lambda: calls.append("r"),
        pairs=2,
        prepare=lambda: calls.append("p"),
    )
    assert "".join(calls) == "pmpr" + "pmpr" + "prpm"
    assert ratio.unit == "s"
