"""Optimisations on the local stack: the built function, dead and frozen evaluations, kills."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from polarlambda.local import LocalStack
from polarlambda.optimization import (
    list_optimizations,
    optimize,
    resume_optimization,
    show_optimization,
)

ROOT = Path(__file__).resolve().parents[2]
SOURCE = '''
"""A bowl, and what objectives do wrong."""

import time

import numpy as np

CENTRE = np.array([1.0, -2.0, 0.5])


def bowl(theta, seed, fault=None, slow=0.0):
    time.sleep(slow)
    if fault == "freeze" and seed % 4 == 0:
        time.sleep(60)
    if fault == "always":
        raise RuntimeError("the simulator has no licence")
    return float(np.sum((theta - CENTRE) ** 2))
'''
# a quadratic's antithetic differences are exact: every decodable set gives the same steps
GIVEN = {"workers": 6, "rate": 0.2, "iterations": 6, "optimizer": "sgd", "momentum": 0.5}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStack]:
    folder = tmp_path_factory.mktemp("objective") / "bowl"
    command = [sys.executable, ROOT / "scripts" / "new_objective.py", folder, "mine:bowl"]
    subprocess.run(command, check=True, capture_output=True)
    (folder / "mine.py").write_text(SOURCE)
    parameters = {"ObjectiveTimeout": "4", "ObjectiveMemory": "512"}
    with (
        LocalStack(objective=folder, parameters=parameters, build="stale") as running,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in running.environment.items():
            patch.setenv(name, value)
        yield running


@pytest.fixture(autouse=True)
def quiet(stack: LocalStack) -> Iterator[None]:
    stack.set_chaos()
    yield
    stack.set_chaos()
    stack.drain()


def expected(iterations: int = GIVEN["iterations"]) -> np.ndarray:
    theta, velocity = np.zeros(3), np.zeros(3)
    for _ in range(iterations):
        velocity = 0.5 * velocity - 0.2 * 2 * (theta - np.array([1.0, -2.0, 0.5]))
        theta = theta + velocity
    return theta


def last_theta(result) -> np.ndarray:
    from blockstore.optimizations import OptimizationStore
    from polarlambda.connect import Place

    store = OptimizationStore(Place().open_bucket(), result.optimization)
    return store.load_checkpoint(store.latest_checkpoint())[0][0]


def test_dead_workers_change_nothing(stack):
    stack.set_chaos(fail=2)
    result = optimize("mine:bowl", [0, 0, 0], **GIVEN)
    assert (result.state, result.met) == ("finished", True)
    np.testing.assert_allclose(last_theta(result), expected(), atol=1e-9)
    assert all(figures.exact for figures in result.history)
    assert result.figures.dollars > 0
    assert result.optimization in list_optimizations()


def test_frozen_evaluations_end_at_the_functions_time_limit(stack):
    given = GIVEN | {"iterations": 2, "wait": "all", "workers": 8}
    result = optimize("mine:bowl", [0, 0, 0], arguments={"fault": "freeze"}, **given)
    assert result.state == "finished"
    lost = [figures.silent + figures.failures for figures in result.history]
    assert sum(lost) > 0
    assert result.figures.seconds < 40


def test_failing_everywhere_ends_with_the_objectives_own_words(stack):
    result = optimize("mine:bowl", [0, 0, 0], arguments={"fault": "always"}, **GIVEN)
    assert result.state == "failed"
    assert "the simulator has no licence" in result.message


def test_another_objective_than_the_functions_is_refused_by_it(stack):
    result = optimize("mine:other", [0, 0, 0], **GIVEN)
    assert result.state == "failed"
    assert "this function evaluates mine:bowl" in result.message


def test_a_killed_coordinator_is_resumed_to_the_same_theta(stack):
    command = [
        *(sys.executable, "-m", "polarlambda", "optimize", "mine:bowl", "--start", "0,0,0"),
        *("--workers", "6", "--rate", "0.2", "--optimizer", "sgd", "--momentum", "0.5"),
        *("--iterations", "12", "--argument", "slow=0.15"),
    ]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    name = process.stderr.readline().split()[-1]
    for _ in range(600):
        status = show_optimization(name)["status"]
        if status is not None and len(status["history"]) >= 2:
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()
    assert 2 <= len(show_optimization(name)["status"]["history"]) < 12
    result = resume_optimization(name)
    assert result.state == "finished"
    assert [figures.iteration for figures in result.history] == list(range(1, 13))
    np.testing.assert_allclose(last_theta(result), expected(12), atol=1e-9)
