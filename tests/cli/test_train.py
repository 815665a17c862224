"""`polarlambda train` and `trainings` on the local stack: results, refusals, kills."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from polarlambda.training.manage import watch_training
from tests.cli.test_refusals import refused

N, D = 48, 4
GOAL = ("--gradient-norm", "1e-9")


@pytest.fixture
def data(cli, bucket, tmp_path):
    """X (48, 4) as "x", its transpose and its Gram matrix, labels for every model."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D)) + 3
    scores = X @ rng.standard_normal((D, 3)) + rng.standard_normal((N, 3))
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", scores[:, 0])
    np.save(tmp_path / "c.npy", (scores - scores.mean(axis=0)).argmax(axis=1))
    np.save(tmp_path / "b.npy", np.where(scores[:, 1] > scores[:, 1].mean(), 5, -1))
    for name, *options in (("x",), ("x.T", "--transpose"), ("w", "--gram")):
        done = cli("encode", tmp_path / "X.npy", name, "--workers", 4, "--data-blocks", 3, *options)
        assert done.exit_code == 0, done.output
    return tmp_path


def ridge(folder, l2):
    X, y = np.load(folder / "X.npy"), np.load(folder / "y.npy")
    A = np.hstack([X, np.ones((N, 1))])
    penalty = l2 * N * np.diag([1.0] * D + [0.0])
    theta = np.linalg.solve(A.T @ A + penalty, A.T @ y)
    loss = ((A @ theta - y) ** 2).sum() / (2 * N) + l2 / 2 * (theta[:-1] ** 2).sum()
    return theta, loss


@pytest.mark.parametrize(
    "source",
    [("x",), ("w", "--data", "X.npy", "--mode", "resident"), ("w", "--transpose", "x.T")],
    ids=" ".join,
)
def test_ridge_is_the_normal_equations_in_both_forms(cli, data, source):
    arguments = [data / a if a.endswith(".npy") else a for a in source]
    done = cli(
        "train", *arguments, "--labels", data / "y.npy", "--model", "ridge", "--l2", 0.1,
        "-o", data / "theta.npy", "--csv", data / "h.csv", "--picture", data / "p.png",
        "--json", *GOAL,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    theta, loss = ridge(data, 0.1)
    np.testing.assert_allclose(np.load(data / "theta.npy"), theta, rtol=1e-6)
    assert (told["state"], told["met"], told["intercept"]) == ("converged", True, True)
    assert told["loss"] == pytest.approx(loss, rel=1e-9)
    assert 1 <= told["iteration"] <= D + 2 and told["dollars"] > 0 and told["notes"] == []
    with open(data / "h.csv") as file:
        lines = list(csv.DictReader(file))
    assert [int(line["iteration"]) for line in lines] == list(range(told["iteration"] + 1))
    assert float(lines[-1]["loss"]) == told["loss"] == told["history"][-1]["loss"]
    assert (data / "p.png").read_bytes().startswith(b"\x89PNG")


def scikit_learns(folder, labels, l2):
    from sklearn.linear_model import LogisticRegression

    X, y = np.load(folder / "X.npy"), np.load(folder / labels)
    return LogisticRegression(C=1 / (N * l2), tol=1e-10, max_iter=5000).fit(X, y), X, y


def test_a_classifier_is_scikit_learns(cli, data):
    done = cli(
        "train", "x", "--labels", data / "b.npy", "--model", "logistic", "--l2", 0.05,
        "-o", data / "theta.npy", "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    theirs, _, y = scikit_learns(data, "b.npy", 0.05)
    ours = np.load(data / "theta.npy")
    np.testing.assert_allclose(ours[:-1], theirs.coef_[0], atol=1e-3)
    assert json.loads(done.stdout)["classes"] == sorted(set(y.tolist()))


def test_a_training_is_listed_shown_watched_and_deleted_with_its_runs(cli, data, bucket):
    assert "starts one" in cli("trainings", "list").stdout
    arguments = ("train", "x", "--labels", data / "y.npy", "--iterations", 2)
    done = cli(*arguments)
    assert done.exit_code == 0, done.output  # a limit is what was asked for
    training = re.search(r"training ([0-9a-z]{26})", done.stdout)[1]
    assert f"training {training}" in done.stderr and "iteration 0" in done.stderr
    listed = cli("trainings", "list").stdout
    assert training in listed and "iterations" in listed
    (only,) = json.loads(cli("trainings", "list", "--json").stdout)
    assert (only["state"], only["last"]["iteration"]) == ("iterations", 2)
    shown = json.loads(cli("trainings", "show", training, "-o", data / "t.npy").stdout)
    assert [facts["iteration"] for facts in shown["history"]] == [0, 1, 2]
    assert np.load(data / "t.npy").shape == (D + 1,)
    watched = cli("trainings", "watch", training)
    assert watched.exit_code == 0 and "iteration 2" in watched.stderr
    runs = sum(len(facts["runs"]) for facts in shown["history"])
    deleted = cli("trainings", "delete", training)
    assert f"with {runs} runs" in deleted.stdout
    left = {info.key.split("/")[0] for info in bucket.list("")}
    assert left == {"matrices"}
    refused(cli("trainings", "delete", training), "no training")
    refused(cli("trainings", "show", training), "no training")
    refused(cli("trainings", "watch", "soon"), "26 characters")


def test_partial_gradients_of_a_schedule_descend_with_a_dead_worker(cli, data, local_stack):
    done = cli(
        "encode", data / "X.npy", "part", "--gram", "--workers", 4, "--schedule", "cpgc",
        "--subtasks", 2, "--replace",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    X, y = np.load(data / "X.npy"), np.load(data / "y.npy")
    A = np.hstack([X, np.ones((N, 1))])
    step = 1 / np.linalg.eigvalsh(A.T @ A / N).max()
    local_stack.warm("WorkerFunction", 4)
    local_stack.set_chaos(fail=1, seed=3)
    done = cli(
        "train", "part", "--labels", data / "y.npy", "--data", data / "X.npy", "--step", step,
        "--tolerance", 0.25, "--iterations", 4, "--json", "-o", data / "t.npy",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    history = json.loads(done.stdout)["history"]
    assert {line["tolerance"] for line in history} == {0.25}
    assert all(0.75 <= line["recovered"] <= 1 for line in history)
    theta = np.load(data / "t.npy")
    before, after = (np.square(A @ w - y).sum() for w in (0 * theta, theta))
    assert after < before


def test_images_bring_their_own_labels(cli, bucket, tmp_path):
    from PIL import Image

    rng = np.random.default_rng(0)
    for name, shade in (("cat", 0), ("dog", 100)):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(6):
            pixels = (rng.integers(0, 120, (4, 4, 3)) + shade).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{i}.png")
    images = ("--images", tmp_path / "photos", "--size", 4, "--workers", 4, "--data-blocks", 3)
    for name, *options in (("p",), ("p.T", "--transpose")):
        done = cli("encode", *images, name, *options)
        assert done.exit_code == 0, done.output
    done = cli("train", "p", "--model", "logistic", "--l2", 1, "--iterations", 1, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["classes"] == [0, 1]


def test_a_step_that_diverges_keeps_the_best_and_says_so(cli, data):
    done = cli(
        "train", "x", "--labels", data / "y.npy", "--step", 5, "-o", data / "theta.npy", "--json"
    )
    assert done.exit_code == 3 and "smaller step" in done.stderr
    told = json.loads(done.stdout)
    assert told["state"] == "diverged" and np.isfinite(np.load(data / "theta.npy")).all()
    assert told["loss"] == min(line["loss"] for line in told["history"])


def test_constant_and_collinear_columns_are_noted_and_nothing_is_nan(cli, data, tmp_path):
    X = np.load(data / "X.npy")
    X[:, 1], X[:, 3] = 7, X[:, 0] - 2 * X[:, 2]
    np.save(tmp_path / "Z.npy", X)
    for name, *options in (("z",), ("z.T", "--transpose"), ("zw", "--gram")):
        cli("encode", tmp_path / "Z.npy", name, "--workers", 4, "--data-blocks", 3, *options)
    best = np.linalg.lstsq(np.hstack([X, np.ones((N, 1))]), np.load(data / "y.npy"), rcond=None)[1]
    for name in ("z", "zw"):
        done = cli("train", name, "--labels", data / "y.npy", "-o", tmp_path / "t.npy", "--json")
        assert done.exit_code in (0, 3)
        told = json.loads(done.stdout)
        assert "constant columns" in told["notes"][0] and "1 (from 0)" in told["notes"][0]
        assert "follow from the others" in told["notes"][1] and "Ridge" in told["notes"][2]
        assert np.isfinite(np.load(tmp_path / "t.npy")).all()
        lost = np.linalg.matrix_rank(X) and told["loss"]
        A = np.hstack([X, np.ones((N, 1))])
        least = np.linalg.lstsq(A, np.load(data / "y.npy"), rcond=None)[0]
        floor = ((A @ least - np.load(data / "y.npy")) ** 2).sum() / (2 * N)
        assert lost == pytest.approx(floor, rel=1e-5)
    assert best.size == 0  # NumPy, too, calls it rank deficient


BAD = [
    (("--labels", "short.npy"), ("48 rows",)),
    (("--labels", "nan.npy"), ("finite", "row 5")),
    (("--labels", "none.npy"), ("cannot be read",)),
    (("--labels", "one.npy", "--model", "logistic"), ("missing",)),
    (("--labels", "gap.npy", "--model", "multinomial"), ("class", "1")),
    (("--labels", "y.npy", "--tolerance", "1"), ("[0, 1)",)),
    (("--labels", "y.npy", "--dollars", "1e-7"), ("one iteration", "$1e-07")),
    (("--labels", "y.npy", "--step", "far"), ("far",)),
    (("--labels", "y.npy", "--deadline", "0"), ("deadline",)),
    (("--labels", "y.npy", "--transpose", "w"), ("not encoded as a transpose",)),
    (("--labels", "y.npy", "-o", "no/such/folder.npy"), ("does not exist",)),
    ((), ("--labels",)),
]


def test_bad_input_is_refused_and_nothing_is_written_or_invoked(cli, data, bucket, local_stack):
    y, c = np.load(data / "y.npy"), np.load(data / "c.npy")
    hole = y.copy()
    hole[5] = np.nan
    for name, array in (
        ("short", y[:-1]),
        ("nan", hole),
        ("one", np.zeros(N)),
        ("gap", np.where(c == 1, 2, c)),
    ):
        np.save(data / f"{name}.npy", array)
    before, invoked = {info.key for info in bucket.list("")}, len(local_stack.invocations())
    for arguments, words in BAD:
        refused(cli("train", "x", *(data / a if ".npy" in a else a for a in arguments)), *words)
    for arguments, words in (
        (("nothing", "--labels", data / "y.npy"), ("no matrix",)),
        (("x.T", "--labels", data / "y.npy"), ("transpose",)),
        (("w", "--labels", data / "c.npy", "--model", "multinomial"), ("Gram",)),
        (("w", "--labels", data / "y.npy", "--data", data / "other.npy"), ("digest",)),
        (("--resume", "0" * 26), ("no training",)),
        (("--resume", "0" * 26, "--step", "3"), ("--step",)),
    ):
        np.save(data / "other.npy", np.load(data / "X.npy") + 1)
        refused(cli("train", *arguments), *words)
    assert {info.key for info in bucket.list("")} == before
    assert len(local_stack.invocations()) == invoked


def test_without_a_transpose_it_says_how_to_make_one(cli, data):
    cli("matrices", "delete", "x.T")
    refused(cli("train", "x", "--labels", data / "y.npy"), "--transpose", "X.npy")
    refused(cli("train", "w", "--labels", data / "y.npy"), "--data")


def test_a_resumed_training_refuses_other_data_and_takes_new_limits(cli, data, bucket):
    arguments = ("train", "x", "--labels", data / "y.npy", "--json")
    training = json.loads(cli(*arguments, "--iterations", 1).stdout)["training"]
    np.save(data / "z.npy", np.load(data / "y.npy") + 1)
    refused(cli("train", "--resume", training, "--labels", data / "z.npy"), "labels")
    refused(cli("train", "w", "--resume", training), "matrix")
    refused(cli("train", "--resume", training, "--model", "ridge"), "--model")
    more = cli(
        "train", "x", "--resume", training, "--labels", data / "y.npy", "--iterations", 50,
        "--json", *GOAL,
    )  # fmt: skip
    assert more.exit_code == 0, more.output
    assert json.loads(more.stdout)["loss"] == pytest.approx(ridge(data, 0)[1], rel=1e-9)
    np.save(data / "X.npy", np.load(data / "X.npy") * 2)
    for name, *options in (("x",), ("x.T", "--transpose")):
        cli(
            "encode", data / "X.npy", name, "--workers", 4, "--data-blocks", 3, "--replace",
            *options,
        )  # fmt: skip
    refused(cli("train", "--resume", training), "encoded again")


class Training:
    """`polarlambda train` in a process of its own, killed when an iteration is reached."""

    def __init__(self, stack, folder, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from polarlambda.cli import main; main()", *arguments],
            cwd=folder,
            env={**os.environ, **stack.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def until(self, iteration: int) -> str:
        """The training's id, once that iteration is stored."""
        line = self.process.stderr.readline()
        training = re.fullmatch(r"training ([0-9a-z]{26})\n", line)[1]
        for now in watch_training(training, every=0.05):
            if now.last is not None and now.last.iteration >= iteration:
                return training
        raise AssertionError("it ended before")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_coordinator_and_dead_workers_give_the_same_loss(cli, data, local_stack, number):
    local_stack.set_chaos(fail=1, seed=3)  # one of four workers never answers
    going = Training(
        local_stack, data, "train", "x", "--labels", "c.npy", "--model", "multinomial",
        "--l2", "0.1", "--gradient-norm", "1e-3",
    )  # fmt: skip
    training = going.until(1)
    going.process.send_signal(number)
    _, errors = going.process.communicate(timeout=60)
    if number == signal.SIGINT:
        assert going.process.returncode == 3 and f"--resume {training}" in errors
    again = cli("train", "--resume", training, "--json", "-o", data / "theta.npy")
    assert again.exit_code == 0, again.output
    told, theta = json.loads(again.stdout), np.load(data / "theta.npy")
    assert (told["training"], theta.shape) == (training, (D + 1, 3))
    theirs, X, y = scikit_learns(data, "c.npy", 0.1)
    chance = theirs.predict_proba(X)[np.arange(N), y]
    loss = -np.log(chance).mean() + 0.05 * (theirs.coef_**2).sum()
    assert told["loss"] == pytest.approx(loss, rel=1e-5)
