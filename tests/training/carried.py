"""A training in memory: its store is a bucket in memory, its products are NumPy's."""

from __future__ import annotations

import numpy as np

from blockstore import keys
from blockstore.training_records import TrainingSpec
from blockstore.trainings import TrainingStore
from polarlambda.training.carry import Carrier
from polarlambda.training.labels import read_labels
from polarlambda.training.recipe import make_descent, make_objective, make_stop
from tests.memory_bucket import MemoryBucket
from tests.training.exact_products import NumpyProduct, problem

TRAINING = keys.new_run_id(1_700_000_000_000, bytes(10))


class Killed(BaseException):
    """The process dies: nothing of ours may catch it."""


class Case:
    """A problem, and processes that work on it one after the other."""

    def __init__(self, form="samples", model="least-squares", **asked):
        self.asked = {"iterations": 6, **asked.pop("stop", {})}
        self.X, objective = problem(model, l2=asked.get("l2", 0.0))
        labels = objective.targets
        if model == "multinomial":
            labels = labels.argmax(axis=1)
        self.labels = labels
        self.targets = read_labels(labels, model, len(self.X))
        self.bucket = MemoryBucket()
        self.store = TrainingStore(self.bucket, TRAINING)
        fields = {
            "training": TRAINING,
            "created": "2026-01-01T00:00:00+00:00",
            "form": form,
            "matrix": "x",
            "matrix_digest": "sha256:0",
            "transpose": "x.T",
            "transpose_digest": "sha256:1",
            "source_digest": "sha256:2",
            "labels_digest": self.targets.digest,
            "samples": len(self.X),
            "features": self.X.shape[1],
            "outputs": self.targets.values.shape[1],
            "model": model,
            "classes": self.targets.classes,
            "l2": 0.0,
            "intercept": True,
            "step": "line",
            "momentum": None,
            "beta": 0.9,
            "tolerance": 0.0,
            "tighten": 1.0,
            "anytime": False,
            "stop": self.asked,
            "deadline": None,
            "mode": "invoke",
            "notes": ("a note",),
        }
        self.spec = TrainingSpec(**{**fields, **asked})
        ones = np.ones((len(self.X), 1))
        both = np.hstack([self.targets.values, ones]) if form == "gram" else ones
        self.moments = self.X.T @ both
        self.products = 0

    def create(self):
        self.store.create(self.spec, self.targets.given, self.moments)

    def carrier(self, on_iterate=lambda at: None, **asked):
        stop, wanted = make_stop({**self.asked, **asked})
        gram = self.spec.form == "gram"
        product = NumpyProduct(self.X.T @ self.X if gram else self.X)
        descent = make_descent(
            self.spec,
            make_objective(self.spec, self.targets),
            stop,
            product,
            NumpyProduct(self.X.T),
            self.store.load_moments(),
            lambda: 0.0,
        )
        return Carrier(self.store, self.spec, self.targets, descent, wanted, on_iterate)
