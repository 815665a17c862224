"""Import time is a budget: a cold worker is a straggler."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("modules", "absent"),
    [
        ("keys, errors, documents", ["numpy", "botocore"]),
        ("arrays, tiling", ["botocore", "hypothesis"]),
        (
            "connect, bucket, runs, tasks, manifest",
            ["boto3", "s3transfer", "polarcodes", "asyncio"],
        ),
    ],
)
def test_modules_import_no_more_than_they_use(modules: str, absent: list[str]) -> None:
    script = f"import sys; from blockstore import {modules}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not set(absent) & set(done.stdout.split())
