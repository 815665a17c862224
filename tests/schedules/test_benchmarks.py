"""The simulations run once per test run, small, and the shared pieces do what they say."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import harness, partial_gradients, recovery, replay, subtasks


@pytest.fixture(autouse=True)
def results(tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "RESULTS", tmp_path / "results")
    monkeypatch.delenv("POLARLAMBDA_DELAYS", raising=False)
    return tmp_path / "results"


def test_partial_gradients_and_its_picture(results, tmp_path, capsys):
    picture = tmp_path / "figure.png"
    assert partial_gradients.main(["--small", "--picture", str(picture)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    printed = capsys.readouterr().out
    assert "measured delays skipped: give --data FOLDER or POLARLAMBDA_DELAYS" in printed
    stored = json.loads((results / "partial_gradients.json").read_text())
    assert set(stored["paper"]) == {*partial_gradients.NAMES, "searched", "bound"}
    for by_quantity in stored["paper"].values():
        assert all(len(values) == 6 for values in by_quantity.values())
        for moment, least in zip(
            by_quantity["time"], stored["paper"]["bound"]["time"], strict=True
        ):
            assert moment >= least
    assert "searched / cpgc at 0.05" in printed


def test_subtasks(results, capsys):
    assert subtasks.main(["--small"]) == 0
    stored = json.loads((results / "subtasks.json").read_text())
    for found in stored["results"]["throughout"].values():
        assert found["r=4 ideal"]["ratio"] <= found["one ideal"]["ratio"] <= found["none"]["ratio"]
    assert "model lambda-rare-tail" in capsys.readouterr().out


def test_recovery(results, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["recovery", "--small"])
    assert harness.main("recovery", "", recovery.run) == 0
    rows = json.loads((results / "recovery.json").read_text())["rows"]
    assert len(rows) == 8
    assert "mcc K=60 r=4, 15 messages: all / one QR" in capsys.readouterr().out


def test_measured_profiles_are_replayed(results, tmp_path, capsys):
    data = tmp_path / "data"
    data.mkdir()
    rng = np.random.default_rng(0)
    np.savetxt(data / "short-mine.csv", 1 + rng.exponential(0.2, (4, 256)), delimiter=",")
    np.savetxt(data / "other-size.csv", np.ones((1, 100)), delimiter=",")
    assert list(replay.measured(data)) == ["short-mine"]
    found = subtasks.measure(replay.measured(data)["short-mine"], "stall", 0.01, small=True)
    assert found["r=4 ideal"]["ratio"] < found["none"]["ratio"]
    held = partial_gradients.replayed(replay.measured(data), "throughout", small=True)
    assert held["searched"]["time"][0] >= held["searched"]["time"][-1] > 1


def test_equal_workers_cost_what_is_charged_and_nothing_else():
    equal = np.full((2, 256), 3.0)
    grid = list(range(128, 257, 2))
    for straggler in replay.STRAGGLERS:
        one = subtasks.coded(equal, 1, subtasks.ideal, straggler, grid, 0.01)
        four = subtasks.coded(equal, 4, subtasks.ideal, straggler, grid, 0.01)
        assert (one["s"], one["ratio"]) == (256, pytest.approx(1.01))
        # Two messages of half a task each, at half the blocks: redundancy costs no time.
        assert (four["s"], four["ratio"]) == (128, pytest.approx(1.02))


def test_a_stalled_worker_loses_its_excess_first():
    times = np.array([[2.0, 5.0]])
    assert replay.part_of_task(times, 0.5, "throughout").tolist() == [[1.0, 2.5]]
    assert replay.part_of_task(times, 0.5, "stall").tolist() == [[1.0, 4.0]]


def test_dead_workers_partial_results_count():
    """r = 2 on two workers, s = 1: two results decode, both of them from the worker that lives."""
    times = np.array([[1.0, np.inf]])
    results = subtasks.results_at(times, 2, 1, "throughout", 0.0)
    assert subtasks.ideal(results, 2).tolist() == [2.0]


def test_without_a_folder_the_reason_is_given(tmp_path):
    assert replay.measured(None) == {}
    assert replay.measured(tmp_path / "absent") == {}
    assert "no CSV of 256 columns in" in replay.why_skipped(tmp_path)
