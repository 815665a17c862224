"""`polarlambda train --anytime` on the local stack: minimum, estimates, and what it refuses."""

from __future__ import annotations

import json

import numpy as np
import pytest

from blockstore.runs import RunStore
from polarlambda.training.arrival_times import ArrivalTimes
from tests.cli.test_refusals import refused

N, D = 80, 24


@pytest.fixture
def data(cli, bucket, tmp_path):
    """X (80, 24) with a condition number of 10, its Gram matrix as "w", and labels."""
    rng = np.random.default_rng(0)
    U = np.linalg.qr(rng.standard_normal((N, D)))[0]
    V = np.linalg.qr(rng.standard_normal((D, D)))[0]
    X = (U * np.sqrt(N * np.logspace(0, -1, D))) @ V
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", X @ rng.standard_normal(D) + 0.1 * rng.standard_normal(N))
    options = ("--workers", 8, "--data-blocks", 6, "--subtasks", 2, "--gram")
    assert cli("encode", tmp_path / "X.npy", "w", *options).exit_code == 0
    return tmp_path


def arguments(data, *more):
    labels = ("--labels", data / "y.npy", "--data", data / "X.npy")
    return ("train", "w", *labels, "--no-intercept", "--step", 1, "--anytime", "--json", *more)


@pytest.fixture
def forecast(monkeypatch):
    """Answers that are expected one by one, so that no clock decides whether a product may stop."""
    costs = [0.001 * m for m in range(1, 100)]
    monkeypatch.setattr(ArrivalTimes, "forecast", lambda self, most: costs[:most])


def test_anytime_steps_descend_also_when_resumed(cli, bucket, data, local_stack, forecast):
    local_stack.set_chaos(fail=1, seed=1)
    first = cli(*arguments(data, "--iterations", 5))
    assert first.exit_code == 0, first.output
    told = json.loads(first.stdout)
    assert (told["state"], told["iteration"]) == ("iterations", 5)
    done = cli(
        "train", "--resume", told["training"], "--iterations", 10, "-o", data / "theta.npy",
        "--json",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["iteration"] == 10
    losses = [line["loss"] for line in told["history"]]
    assert losses[-1] < 0.3 * losses[0]
    X, y, theta = (np.load(data / name) for name in ("X.npy", "y.npy", "theta.npy"))
    assert told["loss"] == pytest.approx(((X @ theta - y) ** 2).sum() / (2 * N), rel=0.3)
    specs = [RunStore(bucket, run).load_spec() for run in bucket.folders("runs/")]
    referring = [spec for spec in specs if spec.reference is not None]
    assert 2 <= len(referring) < len(specs)
    assert all(spec.until.startswith("error=") for spec in referring)
    estimated = [line for line in told["history"] if not line["exact"]]
    assert all(line["error"] > 0 for line in estimated) and len(estimated) <= len(referring)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--step", "line"), "fixed step"),
        (("--momentum", "nesterov"), "without momentum"),
        (("--tolerance", 0.1), "leave out the tolerance"),
    ],
)
def test_what_anytime_steps_cannot_be(cli, bucket, tmp_path, options, word):
    np.save(tmp_path / "y.npy", np.ones(3))
    line = ("train", "w", "--labels", tmp_path / "y.npy", "--step", 1, "--anytime")
    refused(cli(*line, *options), word)
    assert list(bucket.list("")) == []


def test_two_products_that_may_stop_train_a_classifier(cli, bucket, data, forecast):
    for name, *options in (("x",), ("x.T", "--transpose")):
        coded = ("--workers", 8, "--data-blocks", 6, *options)
        assert cli("encode", data / "X.npy", name, *coded).exit_code == 0
    np.save(data / "c.npy", (np.load(data / "y.npy") > 0).astype(int))
    line = ("train", "x", "--labels", data / "c.npy", "--model", "logistic", "--l2", 0.02)
    done = cli(*line, "--no-intercept", "--step", 3, "--anytime", "--iterations", 9, "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    losses = [entry["loss"] for entry in told["history"]]
    assert losses[-1] < 0.8 * losses[0]
    specs = [RunStore(bucket, run).load_spec() for run in bucket.folders("runs/")]
    assert {spec.matrix for spec in specs if spec.reference is not None} == {"x", "x.T"}
    assert {spec.estimator for spec in specs if spec.matrix == "x"} == {"best", "paper"}
