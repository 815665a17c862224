"""Ctrl-C, SIGKILL and `runs cancel` while a run is going on, in processes of their own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from blockstore.keys import new_run_id
from blockstore.runs import RunStore
from polarlambda.local import LocalStack
from polarlambda.runs import watch_run


class Multiply:
    """`polarlambda multiply a x.npy` in a process, up to an estimate of four answers."""

    def __init__(self, stack: LocalStack, folder, *options: str) -> None:
        arguments = ["multiply", "a", "x.npy", "-o", "y.npy", *options]
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from polarlambda.cli import main; main()", *arguments],
            cwd=folder,
            env={**os.environ, **stack.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stderr is not None
        self.run = ""
        said = []
        for line in self.process.stderr:
            said.append(line)
            if found := re.fullmatch(r"run ([0-9a-z]{26})\n", line):
                self.run = found[1]
            if "4 of 8 answers" in line and "95 %" in line:
                break
        assert self.run, "".join(said)

    def end(self, number: int) -> tuple[int, str]:
        """Send a signal; the exit code and the rest of standard error."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors


@pytest.fixture
def slow_half(local_stack, tmp_path):
    """Four of eight workers answer at once, the others in a minute."""
    (tmp_path / "delays.csv").write_text("0,0,0,0,60,60,60,60\n")
    local_stack.set_chaos(delays=tmp_path / "delays.csv")


def resume(cli, folder, run):
    done = cli("runs", "resume", run, "-o", folder / "y.npy", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    product = np.load(folder / "A.npy").astype(float) @ np.load(folder / "x.npy")
    np.testing.assert_allclose(np.load(folder / "y.npy"), product, rtol=1e-6)
    return told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_paying_keeps_the_estimate_and_says_how_to_go_on(
    cli, encoded, bucket, local_stack, slow_half, number
):
    going = Multiply(local_stack, encoded)
    code, errors = going.end(number)
    assert code == 3, errors
    assert f"polarlambda runs resume {going.run}" in errors
    assert "Traceback" not in errors
    store = RunStore(bucket, going.run)
    assert store.get_status().state == "stopped"
    assert store.stopped(1)
    assert np.load(encoded / "y.npy").shape == (40,)

    local_stack.drain()
    local_stack.set_chaos()
    assert resume(cli, encoded, going.run)["state"] == "exact"


def test_a_killed_coordinator_is_resumed(cli, encoded, bucket, local_stack, slow_half):
    going = Multiply(local_stack, encoded)
    code, _ = going.end(signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert not (encoded / "y.npy").exists()
    local_stack.drain()  # the sleeping workers die with it
    local_stack.set_chaos()
    # Nobody but the coordinator knows that they died, so the one that resumes waits for them, up to
    # their time limit; a stop marker says that nobody needs to.
    RunStore(bucket, going.run).put_stop(1)
    assert resume(cli, encoded, going.run)["state"] == "exact"


def test_ctrl_c_while_the_deployed_coordinator_works_cancels_the_run(
    encoded, bucket, local_stack, slow_half
):
    going = Multiply(local_stack, encoded, "--on", "lambda")
    code, errors = going.end(signal.SIGINT)
    assert code == 3, errors
    assert going.run in errors
    assert "Traceback" not in errors
    assert RunStore(bucket, going.run).stopped(1)


def test_a_deployed_run_that_is_interrupted_before_it_began_does_not_begin(bucket, monkeypatch):
    from polarlambda import product_deployed
    from polarlambda.product import Listeners

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(product_deployed, "call_coordinator", interrupt)
    run = new_run_id(1, bytes(10))
    event = {"version": 1, "matrix": "a", "x": f"runs/{run}/x.npy", "run": run}
    result = product_deployed.await_deployed(bucket, None, "function", run, event, Listeners())
    assert (result.state, result.met, result.value) == ("cancelled", False, None)
    assert RunStore(bucket, run).stopped(1)


def test_a_run_of_somebody_else_can_be_watched_and_cancelled(
    cli, encoded, bucket, local_stack, slow_half
):
    going = Multiply(local_stack, encoded)
    watching = watch_run(going.run)
    assert next(watching).state == "running"
    deleted = cli("runs", "delete", going.run)
    assert deleted.exit_code == 2 and f"runs cancel {going.run}" in deleted.stderr
    assert cli("runs", "cancel", going.run).exit_code == 0
    _, errors = going.process.communicate(timeout=60)
    assert going.process.returncode == 3, errors
    assert "cancelled" in errors
    assert RunStore(bucket, going.run).get_status().state == "cancelled"
    assert [*watching][-1].state == "cancelled"
    assert cli("runs", "delete", going.run).exit_code == 0
