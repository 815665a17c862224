"""What the planner assumes about Lambda, S3 and the person's network. One dataclass, every figure
overridable.

Sources, by field: [docs] AWS documentation (Lambda quotas and "Configure Lambda function memory";
S3 performance guidelines); [measured] public Lambda benchmarks of lithops-cloud/applications, June
2022: 512 MB read in 5.4 s and written in 5.7 s (medians of 1,000 functions), five 4096 x 4096
products in 35 s on about one vCPU; [assumed] a cautious round number, to be replaced by a
measurement of your own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

MB = 1 << 20
_MAY_BE_ZERO = ("warm_environments", "cold_seconds")


@dataclass(frozen=True)
class Platform:
    """Limits (sizes in bytes or MB as named) and speeds (bytes, operations or requests per
    second)."""

    memory_min_mb: int = 128  # [docs]
    memory_max_mb: int = 10_240  # [docs]
    timeout_max: float = 900.0  # [docs] seconds
    event_max_bytes: int = 1 << 20  # [docs] asynchronous event
    concurrency: int = 1_000  # [docs] account default
    ramp_burst: int = 1_000  # [docs] environments that a function starts at once
    ramp_rate: float = 100.0  # [docs] environments/s from then on: 1,000 every 10 s
    warm_environments: int = 0  # of the worker function, left by an earlier product
    cold_seconds: float = 0.5  # [assumed] start of an environment until the handler
    memory_per_vcpu_mb: float = 1_769.0  # [docs]
    s3_gets_per_second: float = 5_500.0  # [docs] per prefix, before S3 has scaled up
    s3_puts_per_second: float = 3_500.0  # [docs] the same
    s3_request_seconds: float = 0.1  # [docs] first byte of a small object: 100-200 ms
    s3_read_rate: float = 95e6  # [measured] bytes/s of one function
    s3_write_rate: float = 90e6  # [measured] bytes/s of one function
    product_rate: float = 19e9  # [measured] operations/s of one vCPU in a matrix-matrix product
    stream_rate: float = 3e9  # [assumed] bytes/s that one vCPU converts and multiplies from memory
    invoke_seconds: float = 0.05  # [measured] client time of one asynchronous invoke
    invoke_threads: int = 32  # [assumed] invokes under way at once
    dispatch_seconds: float = 0.5  # [assumed] start of a dispatch function
    start_seconds: float = 1.0  # [assumed] start of a function that imports NumPy and botocore
    client_rate: float = 50e6  # [assumed] bytes/s between S3 and the coordinator
    disk_rate: float = 500e6  # [assumed] bytes/s of the encoder's disk
    encode_rate: float = 700e6  # [measured] bytes/s of coded blocks that one vCPU makes
    decode_rate: float = 300e6  # [measured] bytes/s of answers (float64) that one vCPU decodes
    scan_rate: float = 1e9  # [measured] bytes/s that one vCPU checks and hashes: 1.6e9 on a server
    worker_overhead_seconds: float = 0.05  # [assumed] handler, checks, conditional PUT

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not (math.isfinite(value) and (value > 0 or field.name in _MAY_BE_ZERO)):
                raise ValueError(
                    f"platform {field.name} must be positive and finite, got {value!r}"
                )

    def vcpus(self, memory_mb: int) -> float:
        """Share of processors that Lambda gives to a function of this memory."""
        return memory_mb / self.memory_per_vcpu_mb

    def processors(self, memory_mb: int) -> int:
        """Processors that such a function sees, on which it starts its threads."""
        return max(2, math.ceil(self.vcpus(memory_mb)))
