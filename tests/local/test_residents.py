"""Resident workers on the local stack: killed ones, delays per run, and a killed coordinator."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np
import pytest

import polarlambda
from polarlambda.local import LocalStack

WORKERS, DATA_BLOCKS, COLUMNS = 6, 4, 30


@pytest.fixture
def coded(local_environment: LocalStack) -> Iterator[tuple[np.ndarray, polarlambda.CodedMatrix]]:
    A = np.random.default_rng(4).standard_normal((80, COLUMNS))
    polarlambda.encode(A, "kept", workers=WORKERS, data_blocks=DATA_BLOCKS, replace=True)
    with polarlambda.CodedMatrix.open("kept") as matrix:
        yield A, matrix


def assert_product(value: np.ndarray, expected: np.ndarray) -> None:
    assert np.linalg.norm(value - expected) <= 1e-6 * np.linalg.norm(expected)


def settle(stack: LocalStack) -> None:
    """Wait until no handler runs."""
    for _ in range(200):
        if stack.activity()["running"] == 0:
            return
        time.sleep(0.05)
    pytest.fail("residents outlived their session")


def test_one_invocation_per_worker_serves_a_series(
    local_environment: LocalStack, coded: tuple[np.ndarray, polarlambda.CodedMatrix]
) -> None:
    A, matrix = coded
    rng = np.random.default_rng(5)
    before = len(local_environment.invocations())
    with matrix.session(mode="resident") as session:
        for shape in [(COLUMNS,), (COLUMNS, 3), (COLUMNS,)]:
            x = rng.standard_normal(shape)
            result = session.multiply(x)
            assert result.exact
            assert_product(result.value, A @ x)
        used = session.usage
    settle(local_environment)
    records = local_environment.invocations()[before:]
    assert sorted(record.worker for record in records) == list(range(WORKERS))
    assert {record.outcome for record in records} == {"answered"}
    assert used.products == 3 and used.usage.invokes == WORKERS
    block = (80 // DATA_BLOCKS) * COLUMNS * 8
    x_bytes = (1 + 3 + 1) * COLUMNS * 8
    assert used.bytes_read == WORKERS * (block + x_bytes)
    assert 0 < used.gb_seconds <= session.usage.gb_seconds  # how much: on a fake clock elsewhere


def test_the_product_is_exact_when_residents_are_killed_in_every_run(
    local_environment: LocalStack, coded: tuple[np.ndarray, polarlambda.CodedMatrix]
) -> None:
    A, matrix = coded
    local_environment.set_chaos(fail=1, seed=3)
    x = np.linspace(-1, 1, COLUMNS)
    with matrix.session(mode="resident", idle_limit=5.0) as session:
        for _ in range(4):
            assert_product(session.multiply(x).value, A @ x)
    settle(local_environment)
    assert "exit" in {record.outcome for record in local_environment.invocations()}


def test_delays_are_those_of_the_run(
    local_environment: LocalStack,
    coded: tuple[np.ndarray, polarlambda.CodedMatrix],
    tmp_path,
) -> None:
    _, matrix = coded
    table = tmp_path / "delays.csv"
    table.write_text("0,0,0,0,0,0\n1.5,1.5,1.5,1.5,1.5,0\n")  # nobody's product without four of six
    local_environment.set_chaos(delays=table)
    with matrix.session(mode="resident") as session:
        first, second = (session.multiply(np.ones(COLUMNS)) for _ in range(2))
    assert first.exact and second.exact
    assert second.seconds > 1.5
    settle(local_environment)


def test_a_killed_coordinator_leaves_residents_that_end_and_a_run_that_can_be_resumed(
    local_environment: LocalStack,
    coded: tuple[np.ndarray, polarlambda.CodedMatrix],
    tmp_path,
) -> None:
    A, _ = coded
    table = tmp_path / "delays.csv"
    table.write_text("0,0,0,0,0,0,0\n3,3,3,3,3,3,0\n")  # the extra 0 keeps the second row's delays
    local_environment.set_chaos(delays=table)
    code = (
        "import numpy as np, polarlambda\n"
        "with polarlambda.CodedMatrix.open('kept') as matrix:\n"
        "    session = matrix.session(mode='resident', idle_limit=4.0)\n"
        "    session.multiply(np.ones(30))\n"
        "    session.multiply(np.ones(30), on_event=lambda e: print(e.run, flush=True))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=os.environ.copy()
    )
    assert process.stdout is not None
    run = process.stdout.readline().strip()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    result = polarlambda.resume_run(run)
    assert result.exact
    assert_product(result.value, A @ np.ones(COLUMNS))
    settle(local_environment)
