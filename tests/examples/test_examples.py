"""The examples of docs/optimization.md at a small size: objectives, and that they get better."""

from __future__ import annotations

import functools
import warnings

import numpy as np
import pytest

from polarlambda.optimization.options import Options
from tests.optimization.fake import make_place
from tests.optimization.test_run import begin

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def better(objective, parameters, options, bounds=None):
    place, _ = make_place(objective)
    result = begin(place, options, start=np.zeros(parameters), bounds=bounds).run()
    assert result.figures.failed_evaluations == 0
    return result


def test_cartpole_is_solved_by_gymnasiums_own_threshold():
    gymnasium = pytest.importorskip("gymnasium")
    from examples import cartpole

    threshold = gymnasium.spec("CartPole-v1").reward_threshold
    options = Options(maximize=True, iterations=12, final=20)
    result = better(cartpole.score, 4, options)
    assert result.final.mean > threshold == 475


def test_the_pendulum_gets_better():
    pytest.importorskip("gymnasium")
    from examples import pendulum

    assert pendulum.score(np.zeros(33), 3) == pendulum.score(np.zeros(33), 3)
    options = Options(maximize=True, iterations=8, sigma=0.2, rate=0.2, seeds="common")
    result = better(pendulum.score, 33, options)
    assert result.figures.best_score > -1250


def test_hyper_parameters_get_better_than_where_they_begin():
    pytest.importorskip("sklearn")
    from examples import kernel_ridge

    options = Options(iterations=5, rate=0.2, sigma=0.2, seeds="common")
    result = better(kernel_ridge.loss, 11, options)
    before = np.mean([kernel_ridge.loss(np.zeros(11), seed) for seed in range(5)])
    after = np.mean([kernel_ridge.loss(result.theta, seed) for seed in range(5)])
    assert after < before - 0.005


def test_the_classifier_is_fooled_within_the_box():
    pytest.importorskip("sklearn")
    from examples import attack

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        images, labels = attack.victims()
    objective = functools.partial(attack.margin, image=4)
    options = Options(iterations=8, sigma=0.02, rate=0.1, target=0.0)
    result = better(objective, 64, options, bounds=[-3, 3])
    assert result.state == "target"
    assert np.abs(result.theta).max() <= 3
    changed = np.clip(images[4] + result.theta, 0, 16) / 16
    assert objective(np.zeros(64), 0) > 0
    assert attack.classifier().predict(changed[None])[0] != labels[4]
