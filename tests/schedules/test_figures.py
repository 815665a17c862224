"""Figure 1 of the paper, and the journal's 40 workers, simulated with a fixed seed.

Rounds are as many as make the standard error at most a quarter of the allowed deviation (asserted),
so a correct program fails with another seed with a probability below 1e-4 for each number.
"""

from __future__ import annotations

import numpy as np
import pytest

from polarcodes.schedules import completion, make_schedule, shifted_exponential

TOLERANCES = (0.0, 0.05, 0.10, 0.15, 0.20, 0.30)
FIGURE_1 = {
    "cpgc": ((0.151, 0.120, 0.106, 0.097, 0.088, 0.076), (1.54, 1.30, 1.18, 1.08, 0.99, 0.85)),
    "uc-mmc": ((0.204, 0.154, 0.129, 0.111, 0.099, 0.080), (1.86, 1.57, 1.38, 1.23, 1.10, 0.89)),
    "mcc": ((0.1553,) * 6, (1.05,) * 6),
}
JOURNAL = {
    "rcsc": (0.158, 0.094, 0.076),
    "uc-mmc": (0.242, 0.117, 0.080),
    "mcc": (0.157, 0.157, 0.157),
}


def assert_mean(samples, published, allowed):
    error = samples.std(ddof=1) / np.sqrt(len(samples))
    assert 4 * error <= allowed * published, "too few rounds for the stated confidence"
    assert samples.mean() == pytest.approx(published, rel=allowed)


@pytest.mark.parametrize("name", FIGURE_1)
def test_figure_1(name):
    times, volumes = FIGURE_1[name]
    task_seconds = shifted_exponential(np.random.default_rng(1), 2500, 20)
    result = completion(make_schedule(name, workers=20, load=3), task_seconds)
    for tolerance, time, volume in zip(TOLERANCES, times, volumes, strict=True):
        assert_mean(result.time(tolerance), time, 0.03)
        assert_mean(result.volume(tolerance), volume, 0.03)
        messages = volume * 20 / (3 if name == "mcc" else 1)
        assert_mean(result.message_count(tolerance), messages, 0.03)


@pytest.mark.parametrize("name", JOURNAL)
def test_the_journals_forty_workers(name):
    task_seconds = shifted_exponential(np.random.default_rng(1), 600, 40)
    result = completion(make_schedule(name, workers=40, load=3), task_seconds)
    for tolerance, time in zip((0.0, 0.15, 0.3), JOURNAL[name], strict=True):
        assert_mean(result.time(tolerance), time, 0.06)


def test_the_model_has_the_papers_constants():
    drawn = shifted_exponential(np.random.default_rng(0), 500, 40)
    assert drawn.min() >= 0.01
    assert (drawn - 0.01).mean() == pytest.approx(0.1, rel=0.03)  # 20,000 draws: 4 errors
