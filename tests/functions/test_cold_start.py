"""Cold start is a straggler: what a handler imports is a budget, kept as a list of modules."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

FORBIDDEN = ("boto3", "s3transfer", "click", "rich", "matplotlib", "encoder", "polarlambda", "moto")
WORKER_ONLY = ("polarcodes", "coordinator")


@pytest.mark.parametrize(
    ("handler", "forbidden"),
    [
        ("functions.worker.app", (*FORBIDDEN, *WORKER_ONLY)),
        ("functions.coordinator.app", FORBIDDEN),
        ("functions.decode.app", FORBIDDEN),
        ("functions.dispatch.app", (*FORBIDDEN, "numpy")),
    ],
)
def test_a_handler_imports_only_what_it_uses(handler, forbidden):
    code = f"import sys, {handler}; print(' '.join(sorted(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in ran.stdout.split()}
    assert loaded.isdisjoint(forbidden), loaded & set(forbidden)


@pytest.mark.parametrize(("memory", "threads"), [("128", "1"), ("1769", "1"), ("3538", "2")])
def test_blas_has_a_thread_for_each_processor_before_numpy_is_imported(memory, threads):
    code = (
        "import sys, os; from functions.threads import limit_threads; limit_threads();"
        "print(os.environ['OPENBLAS_NUM_THREADS'], 'numpy' in sys.modules)"
    )
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")}
    environment["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"] = memory
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert ran.stdout.split() == [threads, "False"]
