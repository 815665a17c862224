"""Hyper-parameters of scikit-learn's kernel ridge regression on its diabetes data (442 patients).

Eleven of them: the length scale of each of the ten features in a Gaussian kernel, and the
regularisation, all as logarithms. The score is the mean squared error of five-fold cross-validation
over the variance of the target, 1 - R^2; the seed draws the folds. Minimise it.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import KFold, cross_val_predict

OBJECTIVE = "loss"
REQUIREMENTS = ["scikit-learn==1.9.1"]
START = "zeros:11"
FEATURES, TARGET = load_diabetes(return_X_y=True)
FEATURES = FEATURES / FEATURES.std(axis=0)
TARGET = (TARGET - TARGET.mean()) / TARGET.std()


def loss(theta: np.ndarray, seed: int) -> float:
    """1 - R^2 of kernel ridge with length scales 3 exp(theta[:10]) and alpha exp(theta[10])."""
    scaled = FEATURES / (3.0 * np.exp(theta[:10]))
    model = KernelRidge(kernel="rbf", gamma=0.5, alpha=float(np.exp(theta[10])))
    folds = KFold(5, shuffle=True, random_state=seed)
    predicted = cross_val_predict(model, scaled, TARGET, cv=folds)
    return float(np.mean((predicted - TARGET) ** 2))
