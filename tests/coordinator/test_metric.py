"""Runs whose estimates are judged by inner products with given vectors."""

from __future__ import annotations

import numpy as np
import pytest

from coordinator import events
from coordinator.inputs import InputRefused, check_vectors
from coordinator.wording import describe_error
from polarcodes.estimators import choose_estimator
from polarlambda.product import to_result
from tests.coordinator.fake_platform import Platform
from tests.coordinator.one_run import resume, silent, start, store


@pytest.mark.parametrize("estimator", ["best", "paper", "hybrid"])
def test_the_estimate_its_error_and_its_records_are_about_inner_products(estimator):
    platform = Platform(table=silent(7), code_name="polar")
    heard = []
    outcome = start(
        platform, deadline=5.0, metric="inner", estimator=estimator, on_event=heard.append
    )
    assert (outcome.state, outcome.metric, outcome.arrivals) == ("estimated", "inner", 9)
    arrived = sorted(e.worker for e in heard if isinstance(e, events.Arrived))
    asked = {"best": "best", "paper": "sketch", "hybrid": "hybrid"}[estimator]
    method, error = choose_estimator(platform.code, arrived, asked, metric="inner")
    assert (outcome.method, outcome.error) == (method, pytest.approx(error))
    assert outcome.error_upper == pytest.approx(2 * error)
    assert {e.metric for e in heard} == {"inner"}
    assert store(platform).get_status().metric == "inner"
    assert store(platform).load_spec().metric == "inner"
    assert store(platform).get_report()["metric"] == "inner"
    page = platform.bucket.objects[f"runs/{outcome.run}/report.html"].body.decode()
    assert "inner products" in page and "inner products" in str(to_result(outcome, platform.bucket))


def test_the_products_come_with_a_figure_that_holds():
    """20 codes would be better than one: here the bound of four standard deviations is asked."""
    platform = Platform(table=silent(7), code_name="hadamard", rows=330)
    outcome = start(platform, deadline=5.0, metric="inner")
    vectors = np.random.default_rng(1).standard_normal((330, 6))
    result = to_result(outcome, platform.bucket).against(vectors)
    np.testing.assert_allclose(result.products, vectors.T @ outcome.value, rtol=1e-5)
    truth = vectors.T @ platform.product
    assert 0 < np.linalg.norm(result.products - truth) < 4 * result.products_error
    assert result.to_json(value_path=None)["products"] == result.products.tolist()
    other = Platform()
    exact = to_result(start(other, metric="inner"), other.bucket).against(np.ones(31))
    assert exact.products.shape == () and exact.products_error == 0.0


def test_a_resumed_run_keeps_the_metric():
    platform = Platform(table=silent(7))
    start(platform, deadline=5.0, metric="inner")
    assert resume(platform, billing=None).metric == "inner"


@pytest.mark.parametrize(("code", "metric"), [("uncoded", "inner"), ("polar", "angle")])
def test_a_metric_that_the_code_has_no_errors_for_is_refused(code, metric):
    platform = Platform(code_name=code, data_blocks=16 if code == "uncoded" else 11)
    with pytest.raises(InputRefused, match=r"metric"):
        start(platform, metric=metric)
    assert not platform.bucket.requests


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.ones(30), "31 rows"),
        (np.ones((31, 0)), "31 rows"),
        (np.full(31, np.nan), "finite"),
        (np.zeros(31), "not 0"),
        (np.stack([np.ones(31), np.zeros(31)], axis=1), "not 0"),
        (np.ones(31, complex), "metric"),
    ],
)
def test_vectors_that_have_no_inner_products_are_refused(vectors, message):
    with pytest.raises(InputRefused, match=message):
        check_vectors(vectors, Platform().manifest)


@pytest.mark.parametrize(
    ("error", "upper", "words"),
    [
        (0.25, 0.31, "relative error about 25.0% (95 %: 31.0%)"),
        (0.9, 1.7, "relative error about 90.0% (95 %: > 100%)"),
        (0.9, None, "relative error about 90.0%"),
        (2.6, 4.0, "relative error > 100%: worse than answering 0"),
        (float("inf"), None, "relative error > 100%: worse than answering 0"),
    ],
)
def test_errors_in_words(error, upper, words):
    assert describe_error(error, upper) == words
