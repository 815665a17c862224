"""The benchmarks of decoding in chunks run once per test run, small, and what they compute is
right; how long it takes decides nothing."""

from __future__ import annotations

import json

import pytest

from benchmarks import arrivals, decode_processes, harness


@pytest.mark.parametrize("module", [arrivals, decode_processes])
def test_the_small_run_is_right_and_writes_its_numbers(module, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    for name in ("AWS_ENDPOINT_URL_S3", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "")  # restored after what the benchmark sets
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setattr("sys.argv", ["benchmark", "--small"])
    name = module.__name__.rpartition(".")[2]
    assert harness.main(name, module.__doc__, module.run) == 0
    rows = json.loads((tmp_path / f"{name}.json").read_text())["rows"]
    assert all(row["value"] > 0 for row in rows)
    assert "bytes" in capsys.readouterr().out or name == "arrivals"
