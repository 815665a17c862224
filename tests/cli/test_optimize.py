"""`polarlambda optimize` and `optimizations`: what is refused, before anything is written."""

from __future__ import annotations

import json

import numpy as np
import pytest

from blockstore.keys import new_run_id

NOBODY = new_run_id(1_700_000_000_000, b"0123456789")


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["mine", "--start", "0"], "module:function"),
        (["mine:score", "--start", "a"], "zeros:P"),
        (["mine:score", "--start", "nan"], "finite"),
        (["mine:score", "--start", "nothere.npy"], "cannot be read"),
        (["mine:score", "--start", "0", "--wait", "ever"], "wait must be"),
        (["mine:score", "--start", "0", "--directions", "up"], "directions must be"),
        (["mine:score", "--start", "0,0,0", "--workers", "2"], "data_blocks"),
        (["mine:score", "--start", "0", "--argument", "image"], "NAME=VALUE"),
        (["mine:score", "--start", "2", "--bounds", "0,1"], "outside its bounds"),
        (["mine:score", "--start", "0", "--evaluations", "1"], "pay for one iteration"),
        (["mine:score", "--start", "0", "--rate", "0"], "rate must be"),
        (["mine:score"], "--start"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(cli, bucket, arguments, word):
    result = cli("optimize", *arguments)
    assert result.exit_code == 2
    assert word in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not list(bucket.list("optimizations/"))


def test_without_a_function_it_says_how_to_name_one(cli, bucket, monkeypatch):
    monkeypatch.delenv("POLARLAMBDA_OBJECTIVE", raising=False)
    result = cli("optimize", "mine:score", "--start", "0")
    assert result.exit_code == 2
    assert "polarlambda local run --objective FOLDER" in result.stderr


def test_a_function_that_is_not_there_is_named(cli, bucket, monkeypatch):
    monkeypatch.setenv("POLARLAMBDA_OBJECTIVE", "nobody")
    result = cli("optimize", "mine:score", "--start", "0")
    assert result.exit_code == 2
    assert "'nobody' does not exist" in result.stderr
    assert not list(bucket.list("optimizations/"))


@pytest.mark.parametrize("action", ["show", "watch", "resume", "cancel", "delete"])
def test_an_optimisation_that_is_not_there_is_bad_input(cli, bucket, action):
    result = cli("optimizations", action, NOBODY)
    assert result.exit_code == 2
    assert NOBODY in result.stderr


def test_an_empty_list_is_a_list(cli, bucket):
    result = cli("optimizations", "list", "--json")
    assert (result.exit_code, json.loads(result.stdout)) == (0, [])


def test_numbers_come_from_files_too(tmp_path):
    from polarlambda.cli.optimize import argument, numbers

    np.save(tmp_path / "start.npy", np.arange(3.0))
    np.testing.assert_array_equal(numbers("start", str(tmp_path / "start.npy")), [0, 1, 2])
    assert numbers("start", "zeros:2") == [0, 0]
    assert numbers("scale", "0.5") == 0.5
    assert argument("image=3") == ("image", 3)
    assert argument("name=cart") == ("name", "cart")


def test_the_plan_evaluates_nothing_and_recommends_one_population(cli, monkeypatch):
    monkeypatch.delenv("POLARLAMBDA_BUCKET", raising=False)
    arguments = ("optimize", "mine:score", "--start", "zeros:48", "--plan", "0.5", "--json")
    rows = json.loads(cli(*arguments).stdout)
    chosen = [row for row in rows if row["chosen"]]
    assert len(chosen) == 1
    assert chosen[0]["workers"] > 48  # the shipped model has stragglers
    assert [row["workers"] for row in rows] == sorted(row["workers"] for row in rows)
    assert chosen[0]["seconds"] <= rows[0]["seconds"]
    calm = json.loads(cli(*arguments, "--delays", "none").stdout)
    assert [row["workers"] for row in calm if row["chosen"]] == [48]


def test_a_plan_for_no_time_is_refused(cli):
    result = cli("optimize", "mine:score", "--start", "0", "--plan", "0")
    assert result.exit_code == 2
    assert "above 0" in result.stderr
