"""The delay model `lambda-rare-tail`: short tasks on AWS Lambda, a few of which stall for long.

Fitted to the measured profiles `short-{london,sydney,tokyo}-rare-long-tail` (40 rounds of 256
workers, client-side durations of 1-2 s tasks, September 2022), each value taken as its excess over
the fastest worker of its round. `scripts/fit_delays.py FOLDER` repeats the fit. Three parts, in
seconds:

1. an early share of the workers hardly waits: exponential;
2. the others wait about 0.6 s: log-logistic, F(x) = 1 / (1 + (x / median)^-shape);
3. in a stalled round each worker independently stalls with probability r, where r is exponential
   over rounds (the number of stalled workers is then geometric, as measured: 1 to 11 of 256). A
   stalled worker adds one of two fixed waits to its own delay; the clusters in the data are that
   sharp, which points to time-outs and retries.

Quality of the fit, in seconds:

| | data | model |
|---|---|---|
| 10 %, 50 %, 90 % of the workers below | 0.225, 0.593, 0.794 | 0.216, 0.579, 0.794 |
| 99 %, 99.9 % | 1.197, 26.79 | 1.195, 26.72 |
| mean of a worker | 0.700 | 0.695 |
| share of rounds of 256 with a stall | 0.275 | 0.274 |
| largest of 64 workers of a round: mean | 5.79 | 5.58 |
| the same: 50 %, 80 %, 90 % | 1.11, 1.49, 26.6 | 1.11, 1.50, 26.5 |

The 99.5 % quantile lies where the tail begins (0.4980 % of the workers stall) and is not described:
1.56 against 2.49. The model is pooled: London has fewer early workers than Sydney and Tokyo. No
worker stays slow from round to round, as in the data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FITTED_WORKERS = 256  # columns of the measured profiles


@dataclass(frozen=True)
class LambdaRareTail:
    """Extra seconds of a worker: early share, log-logistic body, rare stalls that come in rounds.

    Every field is a constant of the fit above; pass others to `make_delays("lambda-rare-tail",
    ...)` to study a variation. `early_share`, `stalled_rounds` and `long_share` are probabilities;
    `stall_rate` is the mean of r in a stalled round; the others are seconds, but for the
    dimensionless `body_shape` (> 1, or the mean is infinite).
    """

    early_share: float = 0.103
    early_mean: float = 0.0608
    body_median: float = 0.5964
    body_shape: float = 7.445
    stalled_rounds: float = 0.3506
    stall_rate: float = 0.0142
    short_wait: float = 25.85
    long_wait: float = 36.93
    long_share: float = 0.157
    name: str = "lambda-rare-tail"

    def __post_init__(self) -> None:
        for field in ("early_share", "stalled_rounds", "stall_rate", "long_share"):
            value = getattr(self, field)
            if not 0.0 <= value <= 1.0:
                raise ValueError(f"{field} must be a probability in [0, 1], got {value!r}")
        for field in ("early_mean", "body_median", "short_wait", "long_wait"):
            value = getattr(self, field)
            if not 0.0 < value < math.inf:
                raise ValueError(f"{field} must be a positive number of seconds, got {value!r}")
        if not 1.0 < self.body_shape < math.inf:
            raise ValueError(
                f"body_shape must be above 1 for a finite mean, got {self.body_shape!r}"
            )

    def sample(self, rng: np.random.Generator, rounds: int, workers: int) -> NDArray[np.float64]:
        """Draw a (rounds, workers) float64 array of extra seconds, all >= 0."""
        size = (rounds, workers)
        early = rng.random(size) < self.early_share
        uniform = rng.random(size)
        body = self.body_median * (uniform / (1.0 - uniform)) ** (1.0 / self.body_shape)
        delay = np.where(early, rng.exponential(self.early_mean, size), body)
        stalled_round = rng.random((rounds, 1)) < self.stalled_rounds
        chance = rng.exponential(self.stall_rate, (rounds, 1))
        stalled = stalled_round & (rng.random(size) < chance)
        wait = np.where(rng.random(size) < self.long_share, self.long_wait, self.short_wait)
        return np.asarray(delay + np.where(stalled, wait, 0.0), dtype=np.float64)

    @property
    def stall_probability(self) -> float:
        """Probability that one worker stalls in one round: `stalled_rounds` times E[min(r, 1)]."""
        if self.stall_rate == 0.0:
            return 0.0
        return self.stalled_rounds * self.stall_rate * -math.expm1(-1.0 / self.stall_rate)

    @property
    def mean(self) -> float:
        """Mean extra seconds of one worker."""
        angle = math.pi / self.body_shape
        body = self.body_median * angle / math.sin(angle)
        wait = self.short_wait + self.long_share * (self.long_wait - self.short_wait)
        ordinary = self.early_share * self.early_mean + (1.0 - self.early_share) * body
        return ordinary + self.stall_probability * wait

    def cdf(self, seconds: float) -> float:
        """Probability that one worker's extra time is at most `seconds`."""
        stall = self.stall_probability
        waits = (1.0 - self.long_share) * self._ordinary_cdf(seconds - self.short_wait)
        waits += self.long_share * self._ordinary_cdf(seconds - self.long_wait)
        return (1.0 - stall) * self._ordinary_cdf(seconds) + stall * waits

    def quantile(self, probability: float) -> float:
        """Extra seconds that one worker stays below with the given probability in [0, 1), by
        bisection of the cdf."""
        if not 0.0 <= probability < 1.0:
            raise ValueError(f"probability must be in [0, 1), got {probability!r}")
        low, high = 0.0, 1.0
        while self.cdf(high) < probability:
            high *= 2.0
        for _ in range(100):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.cdf(middle) < probability else (low, middle)
        return high

    def describe(self) -> str:
        """One line for reports."""
        return (
            f"lambda-rare-tail: about {self.body_median:.2g} s of start-up and network per worker; "
            f"in {100 * self.stalled_rounds:.0f} % of the rounds {100 * self.stall_rate:.1f} % "
            f"of the workers stall for {self.short_wait:.0f}-{self.long_wait:.0f} s"
        )

    def _ordinary_cdf(self, seconds: float) -> float:
        if seconds <= 0.0:
            return 0.0
        early = -math.expm1(-seconds / self.early_mean)
        body = 1.0 / (1.0 + math.pow(seconds / self.body_median, -self.body_shape))
        return self.early_share * early + (1.0 - self.early_share) * body
