"""One run in memory, on simulated time: started, resumed, and looked at."""

from __future__ import annotations

import numpy as np

from blockstore import keys
from blockstore.runs import RunStore
from coordinator.outcome import Outcome
from coordinator.report import Billing
from coordinator.run import resume_run, start_run
from tests.coordinator.fake_platform import (
    Platform,
    Silent,
)

TIMEOUT = 60.0
BILLING = Billing(worker_timeout=TIMEOUT)
RUN = keys.new_run_id(1_700_000_000_000, bytes(10))


def start(platform: Platform, **options) -> Outcome:
    return start_run(
        platform.bucket,
        platform.manifest,
        platform.x,
        **{"invoker": platform, "clock": platform.clock, "billing": BILLING, "run": RUN} | options,
    )


def resume(platform: Platform, **options) -> Outcome:
    platform.reports()  # what the earlier process did not hear, nobody hears
    return resume_run(
        platform.bucket,
        RUN,
        **{"invoker": platform, "clock": platform.clock, "billing": BILLING} | options,
    )


def store(platform: Platform) -> RunStore:
    return RunStore(platform.bucket, RUN)


def close(value, product) -> bool:
    return bool(np.linalg.norm(value - product) <= 1e-5 * np.linalg.norm(product))


def silent(count):
    return {worker: [Silent()] for worker in range(count)}
