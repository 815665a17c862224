"""What the commands print, write and return when all goes well, or not quite."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys

import numpy as np
import pytest

from blockstore.runs import RunStore
from polarlambda.cli.output import to_json

FIELDS = {
    "run": str,
    "state": str,
    "exact": bool,
    "verified": bool,
    "arrivals": int,
    "workers": int,
    "error": (float, int, type(None)),
    "error_upper": (float, int, type(None)),
    "value_path": (str, type(None)),
    "seconds": (float, int),
    "cost": (float, type(None)),
}


@pytest.fixture
def warm(local_stack):
    """Workers that answer at once, so that a short deadline is long."""
    local_stack.warm("WorkerFunction", 8)


def product(folder):
    return np.load(folder / "A.npy").astype(float) @ np.load(folder / "x.npy")


def parsed(done, code=0):
    assert done.exit_code == code, done.output

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(done.stdout, parse_constant=refuse)


@pytest.mark.parametrize("on", ["local", "lambda"])
def test_a_product_is_written_and_told_in_json(cli, encoded, on):
    done = cli(
        "multiply", "a", encoded / "x.npy", "-o", encoded / "y.npy", "--on", on, "--json"
    )  # fmt: skip
    told = parsed(done)
    assert done.stderr == ""
    for name, kind in FIELDS.items():
        assert isinstance(told[name], kind), name
    assert (told["state"], told["exact"], told["error"]) == ("exact", True, 0)
    assert told["value_path"] == str(encoded / "y.npy")
    np.testing.assert_allclose(np.load(encoded / "y.npy"), product(encoded), rtol=1e-6)
    assert sorted(p.name for p in encoded.iterdir()) == ["A.npy", "x.npy", "y.npy"]


def test_a_product_is_told_in_words(cli, encoded):
    done = cli("multiply", "a", encoded / "x.npy", "-o", encoded / "y.npy")
    assert done.exit_code == 0, done.output
    assert re.search(r"^exact after \d", done.stdout)
    assert f"product in {encoded / 'y.npy'}" in done.stdout
    assert re.match(r"run [0-9a-z]{26}\n", done.stderr)
    assert "answers" in done.stderr


def test_a_product_by_its_difference_to_an_earlier_run(cli, encoded):
    first = parsed(cli("multiply", "a", encoded / "x.npy", "--json"))
    np.save(encoded / "x.npy", np.load(encoded / "x.npy") + 0.5)
    output = encoded / "y.npy"
    told = parsed(
        cli("multiply", "a", encoded / "x.npy", "--reference", first["run"], "-o", output, "--json")
    )
    assert told["exact"] and told["reference"] == first["run"]
    np.testing.assert_allclose(np.load(output), product(encoded), rtol=1e-6)


def test_nothing_is_written_without_an_output(cli, encoded):
    before = sorted(encoded.iterdir())
    assert cli("multiply", "a", encoded / "x.npy").exit_code == 0
    assert sorted(encoded.iterdir()) == before


def test_what_is_not_reached_is_exit_code_3_and_the_estimate_is_kept(
    cli, encoded, local_stack, warm
):
    local_stack.set_chaos(fail=4)
    output = encoded / "y.npy"
    done = cli("multiply", "a", encoded / "x.npy", "-o", output, "--deadline", 4, "--json")
    told = parsed(done, code=3)
    assert (told["state"], told["exact"]) == ("estimated", False)
    assert told["arrivals"] == 4
    assert told["error_upper"] >= told["error"] > 0
    error = np.linalg.norm(np.load(output) - product(encoded)) / np.linalg.norm(product(encoded))
    assert error <= told["error_upper"]


def test_40_of_64_dead_is_exit_code_3_with_an_estimate(cli, bucket, files, local_stack):
    coded = ("--workers", 64, "--data-blocks", 48)
    assert cli("encode", files / "A.npy", "a", *coded).exit_code == 0
    local_stack.warm("WorkerFunction", 64)
    local_stack.set_chaos(fail=40)
    output = files / "y.npy"
    done = cli("multiply", "a", files / "x.npy", "-o", output, "--deadline", 6, "--json")
    told = parsed(done, code=3)
    assert (told["state"], told["exact"], told["met"]) == ("estimated", False, False)
    assert 0 < told["arrivals"] <= 24
    assert np.load(output).shape == (40,)
    assert 1 >= told["error_upper"] >= told["error"] > 0.5
    assert told["method"] == "least-squares"


def test_when_nobody_answers_there_is_no_estimate_and_no_infinity(cli, encoded, local_stack):
    local_stack.set_chaos(fail=8)
    output = encoded / "y.npy"
    done = cli("multiply", "a", encoded / "x.npy", "-o", output, "--deadline", 4, "--json")
    told = parsed(done, code=3)
    assert (told["arrivals"], told["error"], told["value_path"]) == (0, None, None)
    assert not output.exists()


def test_an_estimate_that_is_good_enough_is_exit_code_0(cli, encoded, local_stack, warm):
    local_stack.set_chaos(fail=4)
    output = encoded / "y.npy"
    done = cli("multiply", "a", encoded / "x.npy", "-o", output, "--until", "seconds=4", "--json")
    told = parsed(done)
    assert (told["state"], told["exact"], told["value_path"]) == ("estimated", False, str(output))


def test_a_run_can_be_listed_shown_watched_resumed_and_deleted(
    cli, encoded, bucket, local_stack, warm
):
    local_stack.set_chaos(fail=4)
    x = encoded / "x.npy"
    run = parsed(cli("multiply", "a", x, "--deadline", 4, "--json"), code=3)["run"]

    listed = parsed(cli("runs", "list", "--json"))
    assert [(r["spec"]["run"], r["status"]["state"]) for r in listed] == [(run, "estimated")]
    assert run in cli("runs", "list").stdout
    shown = parsed(cli("runs", "show", run))
    assert (shown["spec"]["matrix"], shown["report"]["state"]) == ("a", "estimated")
    assert shown["report"]["planned"]["workers"] == 8
    watched = cli("runs", "watch", run, "--json")
    assert json.loads(watched.stdout)["state"] == "estimated"
    assert "estimated" in cli("runs", "watch", run).stderr

    local_stack.set_chaos()
    output = encoded / "y.npy"
    resumed = parsed(cli("runs", "resume", run, "-o", output, "--json"))
    assert (resumed["run"], resumed["state"]) == (run, "exact")
    np.testing.assert_allclose(np.load(output), product(encoded), rtol=1e-6)
    first = output.read_bytes()
    for on in ("local", "lambda"):
        assert cli("runs", "resume", run, "-o", output, "--on", on).exit_code == 0
        assert output.read_bytes() == first

    again = cli("runs", "cancel", run)  # one that has ended stays as it is
    assert again.exit_code == 0 and "had ended before, it is exact" in again.stdout
    assert RunStore(bucket, run).get_status().state == "exact"
    deleted = cli("runs", "delete", run)
    assert re.search(rf"deleted run {run}: \d+ objects", deleted.stdout)
    assert list(bucket.list("runs/")) == []
    assert "no runs" in cli("runs", "list").stdout


def test_a_matrix_is_encoded_with_an_explanation_listed_shown_and_deleted(cli, bucket, files):
    done = cli("encode", files / "A.npy", "a")
    assert done.exit_code == 0, done.output
    assert re.search(r"workers = \d+", done.stderr)
    assert re.search(r"data_blocks = \d+", done.stderr)
    assert "encoded a: 40 x 7 uint8" in done.stdout
    assert re.search(r"^a +40 x 7 +uint8 +polar", cli("matrices", "list").stdout, re.MULTILINE)
    shown = parsed(cli("matrices", "show", "a", "--json"))
    assert (shown["shape"], shown["source_dtype"], shown["dtype"]) == ([40, 7], "uint8", "int16")
    assert shown["objects"] == len(list(bucket.list("")))
    assert "int16" in cli("matrices", "show", "a").stdout
    assert cli("matrices", "delete", "a").exit_code == 0
    assert list(bucket.list("")) == []
    assert "no matrices" in cli("matrices", "list").stdout


def test_a_matrix_made_of_another_one_says_of_which(cli, bucket, files):
    X = np.load(files / "A.npy").astype(np.float64)
    X[:, 3] = 2.0
    np.save(files / "X.npy", X)
    done = cli("encode", files / "X.npy", "w", "--gram", "--workers", 4, "--data-blocks", 3)
    assert done.exit_code == 0, done.output
    shown = cli("matrices", "show", "w").stdout
    assert re.search(
        r"^derived +kind gram, source digest sha256-tree:\w+, rows 40", shown, re.MULTILINE
    )
    assert "constant columns [3]" in shown
    assert re.search(r"^companions +none$", shown, re.MULTILINE)


def test_encode_prints_json_alone(cli, bucket, files):
    done = cli("encode", files / "A.npy", "a", "--workers", 8, "--redundancy", 0.25, "--json")
    told = parsed(done)
    assert (told["name"], told["workers"], told["data_blocks"]) == ("a", 8, 6)
    assert done.stderr == ""


def test_replace_replaces(cli, encoded):
    np.save(encoded / "A.npy", np.ones((5, 7), np.float32))
    done = cli("encode", encoded / "A.npy", "a", "--workers", 8, "--data-blocks", 4, "--replace")
    assert done.exit_code == 0, done.output
    assert parsed(cli("matrices", "show", "a", "--json"))["shape"] == [5, 7]


def test_a_matrix_is_read_from_s3(cli, files, bucket):
    bucket.put("inputs/A.npy", (files / "A.npy").read_bytes())
    url = f"s3://{bucket.name}/inputs/A.npy"
    done = cli("encode", url, "a", "--workers", 8, "--data-blocks", 6)
    assert done.exit_code == 0, done.output
    assert parsed(cli("plan", url, "--workers", 8, "--json"))["shape"] == [40, 7]


def test_a_plan_before_encoding_and_after(cli, encoded, local_stack):
    before = parsed(cli("plan", encoded / "A.npy", "--workers", 8, "--data-blocks", 6, "--json"))
    after = parsed(cli("plan", "a", encoded / "x.npy", "--json"))
    same = ("shape", "workers", "data_blocks", "block_rows", "block_dtype", "arrivals_mean")
    assert {k: before[k] for k in same} == {k: after[k] for k in same}
    assert before["encoding"]["objects"] == 8
    assert "encoding" not in after
    text = cli("plan", "a").stdout
    for word in ("block", "objects", "worker memory", "requests", "GB-s", "$", "99th", "without"):
        assert word in text, word


def test_a_plan_needs_no_bucket_before_encoding(cli, monkeypatch):
    for name in ("POLARLAMBDA_BUCKET", "POLARLAMBDA_WORKER", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name, raising=False)
    told = parsed(cli("plan", "--shape", "16000x12288", "--dtype", "uint8", "--json"))
    assert told["encoding"]["workers"] == told["workers"]
    assert told["expected_time"]["pays"] in (True, False)


def test_help_and_version(cli):
    assert cli("-h").stdout == cli("--help").stdout
    for name in ("encode", "multiply", "plan", "matrices", "runs", "local", "demo"):
        assert name in cli("-h").stdout
        assert cli(name, "-h").exit_code == 0
    assert re.match(r"polarlambda, version \d", cli("--version").stdout)
    assert cli("fly").exit_code == 2


def test_json_has_neither_nan_nor_infinity():
    told = json.loads(to_json({"a": math.nan, "b": [math.inf, {"c": -math.inf}], "d": 1.5}))
    assert told == {"a": None, "b": [None, {"c": None}], "d": 1.5}


def test_python_m_is_the_command_and_a_reader_may_stop_reading():
    command = [sys.executable, "-m", "polarlambda"]
    told = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    assert told.stdout.startswith("polarlambda, version")
    arguments = ["plan", "--shape", "1000x100", "--dtype", "uint8", "--workers", "8"]
    with subprocess.Popen([*command, *arguments], stdout=-1, stderr=-1, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
