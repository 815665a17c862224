"""A least-squares problem of known conditioning, and trainings on it in virtual time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from polarcodes.delays import DelayModel
from polarlambda.simulation.iterations import SimulatedMatrix
from polarlambda.simulation.iterations_schemes import Scheme, Timing
from polarlambda.training.advance import Advance, FixedStep, LineSearch
from polarlambda.training.anytime_gram import ESTIMATES, AnytimeGram
from polarlambda.training.gradients import GradientSource
from polarlambda.training.gram import GramGradient, Moments
from polarlambda.training.iterate import Iterate
from polarlambda.training.loop import Descent
from polarlambda.training.models import make_model
from polarlambda.training.objective import Objective
from polarlambda.training.products import Product
from polarlambda.training.stopping import Stop
from polarlambda.training.tolerance import Tolerance

MOST_ITERATIONS = 3000
GOAL = 1e-3  # of the first suboptimality


@dataclass(frozen=True)
class Problem:
    """min ||X w - y||^2 / (2 n), W = X^T X with eigenvalues n from 1 to 1 / condition, log-spaced.

    Fixed steps are 1, which is 1 / L.
    """

    gram: NDArray[np.float64] = field(repr=False)
    moments: Moments = field(repr=False)
    objective: Objective = field(repr=False)
    best: NDArray[np.float64] = field(repr=False)
    X: NDArray[np.float64] = field(repr=False)
    least: float = 0.0
    first: float = 0.0

    @classmethod
    def make(cls, condition: float, *, features: int = 240, seed: int = 0) -> Problem:
        """n = 4 d samples with a tenth of noise."""
        rng = np.random.default_rng(seed)
        n = 4 * features
        left = np.linalg.qr(rng.standard_normal((n, features)))[0]
        right = np.linalg.qr(rng.standard_normal((features, features)))[0]
        sizes = np.sqrt(n * np.logspace(0, -np.log10(condition), features))
        X = (left * sizes) @ right
        y = X @ rng.standard_normal((features, 1)) + 0.1 * rng.standard_normal((n, 1))
        objective = Objective(make_model("least-squares"), y, intercept=False)
        gram = X.T @ X
        best = np.linalg.solve(gram, X.T @ y)
        moments = Moments(X.T @ y, X.sum(axis=0)[:, None])
        least, first = objective.loss(X @ best), objective.loss(np.zeros_like(y))
        return cls(gram, moments, objective, best, X, least, first)

    def target(self, goal: float) -> float:
        """The loss at which this share of the first suboptimality is left."""
        return self.least + goal * (self.first - self.least)

    def excess(self, theta: NDArray[np.float64]) -> float:
        """The true suboptimality, over the first."""
        away = self.X @ (theta - self.best)
        return float((away * away).sum()) / (2 * len(self.X)) / (self.first - self.least)


@dataclass(frozen=True)
class Trained:
    """seconds, dollars, excess: after every iteration; exact: whether its gradient was."""

    seconds: NDArray[np.float64]
    dollars: NDArray[np.float64]
    excess: NDArray[np.float64]
    exact: NDArray[np.bool_]

    @property
    def to_target(self) -> int | None:
        """The iteration from which on `GOAL` is reached; None if it is not."""
        there = np.flatnonzero(self.excess <= GOAL)
        return int(there[0]) if there.size else None


def train(
    problem: Problem,
    scheme: Scheme,
    delays: DelayModel,
    timing: Timing,
    *,
    mode: str = "exact",
    tolerance: float = 0.0,
    seed: int = 0,
    iterations: int = MOST_ITERATIONS,
    goal: float = GOAL,
) -> Trained:
    """Train with the product's own code on virtual time.

    mode : "exact", "partial" (rows may be missing, by `tolerance`), "anytime", or "conjugate"
    (exact, with a line search). It ends when `goal` of the first suboptimality is left.
    """
    matrix = SimulatedMatrix(problem.gram, scheme, delays, timing=timing, seed=seed)
    product = Product(matrix)
    gram = GramGradient(product, problem.moments, problem.objective)
    source: GradientSource = gram
    if mode == "anytime":
        source, tolerance = AnytimeGram(product, matrix.code, gram), ESTIMATES
    advance: Advance = LineSearch() if mode == "conjugate" else FixedStep(1.0)
    seen: list[tuple[float, float, float, bool]] = []

    def look(at: Iterate) -> None:
        seen.append((at.seconds, at.dollars, problem.excess(at.theta), at.exact))

    stop = Stop(loss=problem.target(goal), iterations=iterations)
    Descent(source, advance, stop, Tolerance(tolerance), matrix.clock).run(look)
    seconds, dollars, excess, exact = (np.array(column) for column in zip(*seen, strict=True))
    return Trained(seconds, dollars, excess, exact)
