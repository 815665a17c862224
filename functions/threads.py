"""BLAS threads according to the processors that Lambda gives a function."""

from __future__ import annotations

import os

__all__ = ["limit_threads"]

VCPU_MEGABYTES = 1769  # Lambda gives one vCPU for that much memory


def limit_threads() -> None:
    """Give BLAS as many threads as the function has vCPUs; to be called before NumPy is imported.

    More would only take turns on the same share of a core.
    """
    memory = int(os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE") or VCPU_MEGABYTES)
    threads = str(max(1, round(memory / VCPU_MEGABYTES)))
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, threads)
