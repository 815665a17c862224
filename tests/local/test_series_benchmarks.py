"""The benchmarks of series of products run, small, and their tables have what they promise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import harness, resident, training_local


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(harness, "RESULTS", tmp_path / "results")
    monkeypatch.delenv("POLARLAMBDA_DELAYS", raising=False)
    return tmp_path / "results"


def test_residents_read_x_alone(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert resident.main(["--small"]) == 0
    assert "resident" in capsys.readouterr().out
    modes = json.loads((results / "resident.json").read_text())["modes"]
    x_bytes = resident.WORKERS * resident.COLUMNS * 4
    assert [one["bytes_read"] for one in modes["resident"]] == [x_bytes]
    assert [one["bytes_read"] > 100 * x_bytes for one in modes["invoke"]] == [True]
    assert modes["resident"][0]["whole"]["usage"]["invokes"] == resident.WORKERS


def test_every_scheme_reaches_the_same_loss(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert training_local.main(["--small", "--scale", "0.2"]) == 0
    assert "uncoded" in capsys.readouterr().out
    schemes = json.loads((results / "training_local.json").read_text())["schemes"]
    assert len({row["iterations"] for row in schemes}) == 1
    losses = [row["loss"] for row in schemes]
    assert max(losses) - min(losses) <= 1e-6 * max(losses)
