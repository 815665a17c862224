"""What a fleet meets on AWS, beyond what the planner assumes: `Platform` has the rest."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from coordinator.platform import Platform

__all__ = ["LIMITS", "FleetLimits", "SecondCounter", "TokenBucket"]


@dataclass(frozen=True)
class FleetLimits:
    """Seconds and rates; `platform` has those that plans know too.

    Sources as in `coordinator.platform`: [docs], [measured] on this project's machine with botocore
    1.4x against a server on loopback, [assumed].
    """

    platform: Platform
    invoke_cpu: float = 0.001  # [measured] processor time of a client for one invocation
    get_cpu: float = 0.001  # [measured] for one small GET
    list_page_cpu: float = 0.028  # [measured] for a page of 1,000 keys
    list_seconds: float = 0.1  # [docs] until a page begins to come
    get_seconds: float = 0.1  # [docs] the same of a small object
    threads: int | None = None  # requests the coordinator has under way; None: as on AWS
    request_attempts: int = 5  # of the S3 client
    split_seconds: float = 60.0  # [assumed] of throttling after which S3 doubles a prefix's rate
    queue_first_pause: float = 1.0  # [docs] of an event that found no environment; doubles
    queue_longest_pause: float = 300.0  # [docs]
    event_age: float = 900.0  # of the template: older events are dropped

    def lift(self, name: str) -> FleetLimits:
        """The same without one of `LIMITS`."""
        changes, platform_changes = LIMITS[name]
        platform = replace(self.platform, **platform_changes)
        return replace(self, platform=platform, **changes)


# What can be lifted, to see what it costs: (fields of FleetLimits, fields of Platform).
LIMITS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "invoke rate": ({"invoke_cpu": 0.0}, {"invoke_seconds": 1e-9, "dispatch_seconds": 1e-9}),
    "launch ramp": ({}, {"cold_seconds": 0.0, "ramp_rate": 1e12}),
    "concurrency": ({}, {"concurrency": 1 << 30}),
    "S3 requests per prefix": ({}, {"s3_gets_per_second": 1e12, "s3_puts_per_second": 1e12}),
    "listing": ({"list_page_cpu": 0.0, "list_seconds": 0.0}, {}),
    "fetching": ({"get_cpu": 0.0, "get_seconds": 0.0}, {"client_rate": 1e15}),
}


class TokenBucket:
    """`rate` tokens a second, `burst` of them at most at hand; times need not be ordered."""

    def __init__(self, rate: float, burst: float, at: float) -> None:
        self.rate, self.burst = rate, burst
        self._tokens, self._at = burst, at

    def take(self, at: float) -> bool:
        """Take a token if there is one."""
        if at > self._at:
            self._tokens = min(self.burst, self._tokens + (at - self._at) * self.rate)
            self._at = at
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True


class SecondCounter:
    """At most `rate` requests in each second, whatever the order in which they are asked about.

    The coordinator's threads make requests ahead of the events of the simulation, so that times go
    back and forth here.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._counts: Counter[int] = Counter()

    def take(self, at: float) -> bool:
        """Count a request if there is room for it."""
        second = int(at)
        if self._counts[second] >= self.rate:
            return False
        self._counts[second] += 1
        return True
