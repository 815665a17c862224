"""Fool a classifier that can only be asked: a small change of a digit's 64 pixels.

The classifier is a scikit-learn network with one hidden layer, trained on the first 1,200 of its
digits (8 x 8 pixels, 0 to 16); attacked are images it gets right. The score is the margin, log
probability of the true class minus that of the best other class: below 0 the classifier is wrong.
Minimise it with --bounds=-3,3, and --argument image=K for the K-th image that can be attacked.
"""

from __future__ import annotations

import functools

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

OBJECTIVE = "margin"
REQUIREMENTS = ["scikit-learn==1.9.1"]
START = "zeros:64"
TRAINED = 1_200


@functools.cache
def classifier() -> MLPClassifier:
    """The network, trained when it is first used: the same on every machine."""
    images, labels = load_digits(return_X_y=True)
    network = MLPClassifier((32,), max_iter=120, random_state=0, tol=1e-3)
    return network.fit(images[:TRAINED] / 16, labels[:TRAINED])


@functools.cache
def victims() -> tuple[np.ndarray, np.ndarray]:
    """(images (k, 64), labels (k,)) that it was not trained on and gets right."""
    images, labels = load_digits(return_X_y=True)
    images, labels = images[TRAINED:], labels[TRAINED:]
    right = classifier().predict(images / 16) == labels
    return images[right], labels[right]


def margin(theta: np.ndarray, seed: int, image: int = 0) -> float:
    """Log probability of the true class minus that of the best other, of image + theta."""
    pixels, label = victims()[0][image], victims()[1][image]
    changed = np.clip(pixels + theta, 0, 16) / 16
    log_probability = classifier().predict_log_proba(changed[None])[0]
    others = np.delete(log_probability, label)
    return float(log_probability[label] - others.max())
