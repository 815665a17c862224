"""The product's own functions on the local stack."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polarlambda
from polarlambda.local import LocalStack

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the functions are built from; the installed dependencies are shared."""
    copy = tmp_path / "checkout"
    copy.mkdir()
    layers = ("functions", "polarcodes", "blockstore", "coordinator", "encoder")
    for name in (*layers, "scripts", "requirements"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("Makefile", "template.yaml"):
        shutil.copy(ROOT / name, copy / name)
    (copy / ".aws-sam").mkdir()
    (ROOT / ".aws-sam" / "dependencies").mkdir(parents=True, exist_ok=True)
    (copy / ".aws-sam" / "dependencies").symlink_to(ROOT / ".aws-sam" / "dependencies")
    return copy


def test_an_edited_source_runs_only_after_a_build(
    checkout: Path, new_client: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    def answer(**options: Any) -> dict[str, Any]:
        with LocalStack(template=checkout / "template.yaml", **options) as stack:
            response = new_client(stack).invoke(FunctionName="WorkerFunction", Payload=b"{}")
        found: dict[str, Any] = json.loads(response["Payload"].read())
        return found

    assert answer()["state"] == "refused"
    source = checkout / "functions" / "worker" / "app.py"
    source.write_text(source.read_text().replace('"refused"', '"sent away"'))
    caplog.clear()
    assert answer()["state"] == "refused"
    assert "artifact of WorkerFunction is older than the sources (functions/worker/app.py)" in (
        caplog.text
    )
    assert answer(build="stale")["state"] == "sent away"


def test_dead_workers_are_survived_and_the_journal_tells_all(local_environment: LocalStack) -> None:
    stack = local_environment
    generator = np.random.default_rng(7)
    matrix = generator.standard_normal((160, 12)).astype(np.float32)
    x = generator.standard_normal(12).astype(np.float32)
    polarlambda.encode(matrix, "journal", workers=16, data_blocks=10, seed=1)
    stack.set_chaos(fail=1, seed=3)
    with polarlambda.CodedMatrix.open("journal") as coded:
        result = coded.multiply(x)
    stack.drain()
    assert result.exact
    np.testing.assert_allclose(result.value, matrix @ x, rtol=1e-4, atol=1e-4)
    records = [record for record in stack.invocations() if record.run == result.run]
    assert {record.worker for record in records} == set(range(16))
    assert {record.function for record in records} == {"WorkerFunction"}
    assert sorted({record.outcome for record in records}) == ["answered", "failed"]
    assert len({record.worker for record in records if record.outcome == "failed"}) == 1
    assert all(record.memory_mb == 1769 and record.peak_memory > 20 << 20 for record in records)


def test_the_coordinator_is_neither_delayed_nor_failed(local_environment: LocalStack) -> None:
    stack = local_environment
    matrix = np.arange(48, dtype=np.uint8).reshape(16, 3)
    polarlambda.encode(matrix, "calm", workers=4, data_blocks=3)
    stack.set_chaos(model="exponential", scale=0.05, seed=1, fail=4)
    with polarlambda.CodedMatrix.open("calm") as coded:
        result = coded.multiply(np.ones(3), deadline=3, on="lambda")
    assert not result.exact
    coordinators = [
        record for record in stack.invocations() if record.function == "CoordinatorFunction"
    ]
    assert coordinators and {(r.delay, r.outcome) for r in coordinators} == {(0.0, "answered")}
    workers = [record for record in stack.invocations() if record.run == result.run]
    assert all(r.delay > 0 and r.outcome == "failed" for r in workers if r.worker is not None)
