"""The real data, and the benchmark that trains on them."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from click.testing import CliRunner

from benchmarks import harness, training_data
from polarlambda.cli import command
from polarlambda.errors import BadInput
from polarlambda.training.examples import make_example


def test_flights_are_those_with_an_arrival_delay_and_their_columns_are_scaled():
    made = make_example("flights")
    assert made.X.shape == (327_346, 158) and made.X.dtype == np.float32
    assert len(made.columns) == 158 and made.columns[0][0] == "dep_delay"
    np.testing.assert_allclose(made.X.mean(axis=0, dtype=np.float64), 0, atol=1e-4)
    np.testing.assert_allclose(made.X.std(axis=0, dtype=np.float64), 1, atol=1e-3)
    _, mean, scale = made.columns[0]
    assert (made.X[:, 0] * scale + mean).max() == pytest.approx(1301, rel=1e-4)
    assert np.corrcoef(made.X[:, 0], made.y)[0, 1] > 0.9
    some = make_example("flights", 500)
    assert some.X.shape[0] == len(some.y) == 500 and some.X.shape[1] == len(some.columns)
    assert (some.X.std(axis=0) > 0.9).all()


def test_the_command_writes_files_to_encode_and_train_on(tmp_path):
    folder = tmp_path / "new" / "digits"
    done = CliRunner().invoke(command, ["data", "digits", str(folder)])
    assert done.exit_code == 0, done.output
    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    assert (X.shape, y.shape, X.min(), X.max()) == ((1797, 64), (1797,), 0, 1)
    assert sorted(set(y.tolist())) == list(range(10))
    with open(folder / "columns.csv") as file:
        assert len(list(csv.DictReader(file))) == 64


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["cats", "x"], "flights, digits"),
        (["digits", "x", "--rows", "1"], "at least 2"),
        (["digits", __file__], "is a file"),
    ],
)
def test_bad_input_writes_nothing(tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(command, ["data", *arguments])
    assert done.exit_code == 2 and words in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sklearn.datasets", None)
    with pytest.raises(BadInput, match=r"polarlambda\[examples\]"):
        make_example("digits")


@pytest.mark.slow
def test_the_benchmark_agrees_with_numpy_and_scikit_learn(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(harness, "RESULTS", tmp_path)
    assert training_data.main(["--small"]) == 0
    rows = json.loads((tmp_path / "training_data.json").read_text())["rows"]
    assert [(row["data"], row["form"]) for row in rows] == [
        ("flights", "gram"),
        ("digits", "samples"),
    ]
    assert all(row["loss_difference"] <= 1e-3 for row in rows)
    assert "flights" in capsys.readouterr().out
