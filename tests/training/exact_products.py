"""Coded products without a platform: NumPy's, with rows that may be missing, and counted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from polarlambda.training.gradients import Spent
from polarlambda.training.models import make_model
from polarlambda.training.objective import Objective
from polarlambda.training.products import Rows


class NumpyProduct:
    """x -> A x. With a tolerance, the rows of `missing[call]` are not known."""

    def __init__(self, A, missing: Sequence[np.ndarray] = ()):
        self.A, self.missing, self.count = A, missing, 0

    def __call__(self, x, tolerance=0.0):
        self.count += 1
        value, known = self.A @ x, None
        if tolerance > 0 and self.missing:
            known = ~self.missing[self.count % len(self.missing)]
            value = np.where(known[:, None], value, 0.0)
        return Rows(value, known, Spent(0.0, 1.0, (f"run{self.count}",)))


def problem(model="least-squares", n=200, d=9, l2=0.0, intercept=True, seed=0):
    """(X (n, d), objective) whose Hessian is a little ill-conditioned."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.linspace(0.3, 1.5, d)
    scores = X @ rng.standard_normal((d, 3)) + 0.5 + 0.3 * rng.standard_normal((n, 3))
    targets = {
        "least-squares": scores[:, :1],
        "ridge": scores[:, :1],
        "logistic": (scores[:, :1] > 0).astype(float),
        "multinomial": np.eye(3)[scores.argmax(axis=1)],
    }[model]
    return X, Objective(make_model(model), targets, l2=l2, intercept=intercept)
