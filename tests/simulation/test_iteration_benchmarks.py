"""The benchmarks of iterations run, small, and their tables have what they promise."""

from __future__ import annotations

import json

import pytest

from benchmarks import anytime, harness, training


@pytest.fixture(autouse=True)
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "RESULTS", tmp_path / "results")
    monkeypatch.delenv("POLARLAMBDA_DELAYS", raising=False)
    return tmp_path / "results"


def test_training(results, capsys):
    assert training.main(["--small"]) == 0
    printed = capsys.readouterr().out
    assert "measured delays skipped" in printed
    stored = json.loads((results / "training.json").read_text())
    for rows in stored["tables"].values():
        found = {(row["scheme"], row["mode"]): row for row in rows}
        assert {mode.split()[0] for _, mode in found} == {
            "exact", "partial", "anytime", "conjugate",
        }  # fmt: skip
        names = {"no coding", "re-launching", *training.SCHEDULES, "polar", "hadamard"}
        assert names < {scheme for scheme, mode in found if mode == "exact"}
        exact = {row["iterations"] for (_, mode), row in found.items() if mode == "exact"}
        assert len(exact) == 1, "every exact scheme makes the same steps"
        assert found["gradient", "exact"]["work"] == 3
        for scheme, _ in found:
            assert scheme in printed


def test_anytime_and_its_picture(results, tmp_path, capsys):
    picture = tmp_path / "anytime.png"
    assert anytime.main(["--small", "--picture", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    rows = json.loads((results / "anytime.json").read_text())["rows"]
    found = {(row["delays"], row["scheme"], row["mode"]): row for row in rows}
    for delays, scheme, mode in found:
        if mode == "anytime":
            estimated, exact = found[delays, scheme, mode], found[delays, scheme, "exact"]
            assert estimated["exact_share"] < 0.8 and exact["exact_share"] == 1
            assert estimated["seconds"] < exact["seconds"]
            assert estimated["at_equal_time"] <= exact["at_equal_time"] * 1.001
    assert "goal: an excess of 0.001" in capsys.readouterr().out
